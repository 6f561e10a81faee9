"""Pages of another origin may read answers where the operator allows it, and never manage models."""

from pathlib import Path

import pytest

from tests.http.peer import Server
from tsctl.daemon.api.guards import cors_headers, with_preflight
from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.core.errors import MissingToken, StartError
from tsctl.daemon.http.exchange import Exchange

ALLOWED = {
    "cors_allowed_origin": "https://app.example",
    "cors_allowed_methods": "POST, OPTIONS",
    "cors_allowed_headers": "authorization, content-type",
}
HEADERS = (
    ("Access-Control-Allow-Origin", "https://app.example"),
    ("Access-Control-Allow-Methods", "POST, OPTIONS"),
    ("Access-Control-Allow-Headers", "authorization, content-type"),
)
ASKS = (
    b"OPTIONS /predictions/m HTTP/1.1\r\nhost: a\r\norigin: https://app.example\r\n"
    b"access-control-request-method: POST\r\n\r\n"
)


def config(root: Path, **settings: str) -> Config:
    return resolve({"state_dir": str(root), **settings}, {})


def forbidden(exchange: Exchange) -> None:
    exchange.fail(MissingToken())


def test_every_answer_carries_what_is_allowed(tmp_path: Path) -> None:
    server = Server(forbidden, headers=cors_headers(config(tmp_path, **ALLOWED)))
    client = server.connect()

    client.send(b"POST /predictions/m HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n")
    client.send(b"nonsense\r\n\r\n")

    for answer in client.answers:
        assert {name: answer.headers[name.lower()] for name, _ in HEADERS} == dict(HEADERS)
    assert len(client.answers) == 2


def test_a_browser_may_ask_without_a_token_what_it_may_send(tmp_path: Path) -> None:
    server = Server(with_preflight(forbidden), headers=cors_headers(config(tmp_path, **ALLOWED)))
    client = server.connect()

    client.send(ASKS)
    client.send(b"OPTIONS /predictions/m HTTP/1.1\r\nhost: a\r\n\r\n")

    asked, other = client.answers
    assert (asked.status, asked.headers["access-control-allow-methods"]) == (204, "POST, OPTIONS")
    assert other.status == MissingToken.status


def test_without_an_origin_nothing_is_allowed(tmp_path: Path) -> None:
    assert cors_headers(config(tmp_path, cors_allowed_methods="POST")) == ()
    assert cors_headers(config(tmp_path, cors_allowed_origin="*")) == (("Access-Control-Allow-Origin", "*"),)


@pytest.mark.parametrize("origin", ["app.example", "https://a.example,https://b.example", "https://a.example/x", "a b"])
def test_what_is_no_origin_is_refused(tmp_path: Path, origin: str) -> None:
    with pytest.raises(StartError, match="is not an origin: write one"):
        config(tmp_path, cors_allowed_origin=origin)


def test_an_address_for_management_is_told_to_send_none(tmp_path: Path) -> None:
    both = "127.0.0.1:8080"
    made = config(tmp_path, **ALLOWED, inference_address=both, management_address=both, management_without_token="true")

    assert [note for note in made.notes if "`cors_allowed_origin` has no effect on 127.0.0.1:8080" in note]
