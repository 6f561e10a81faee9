"""Access control at a TCP address: tokens, web pages, and foreign hosts."""

import hmac
import re
from collections.abc import Callable

import pytest

from tests.http.peer import Server
from tsctl.daemon.api.auth import (
    Check,
    bearer,
    check_host,
    check_origin,
    check_token,
    guarded,
    host_of,
    inference_check,
    management_check,
    matches,
    own_hosts,
)
from tsctl.daemon.core.errors import DaemonError, Forbidden, Loading, MissingToken, WrongToken
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Request, Response
from tsctl.daemon.http.router import Router

HOST = ("Host", "127.0.0.1:8081")
HOSTS = own_hosts(["gpu1"], 8081, ["models.example.com", "edge:9000"])


def ask(*headers: tuple[str, str], target: str = "/") -> Request:
    return Request("GET", target, list(headers))


def shown(token: str) -> tuple[str, str]:
    return "Authorization", f"Bearer {token}"


def outcome(check: Check, request: Request) -> type[DaemonError] | None:
    try:
        check(request)
    except DaemonError as error:
        return type(error)
    return None


@pytest.mark.parametrize(
    ("header", "token"),
    [
        pytest.param(("Authorization", "Bearer abc"), "abc", id="as it should be"),
        pytest.param(("authorization", "bearer  abc "), "abc", id="in any case, with more spaces"),
        pytest.param(("Authorization", "Basic abc"), "", id="not of another scheme"),
        pytest.param(("Authorization", "abc"), "", id="not without a scheme"),
        pytest.param(("Authorization", "Bearer"), "", id="not without a token"),
        pytest.param(("Authorization", "Bearer a b"), "", id="not two"),
        pytest.param(("Authorization", "Bearerabc"), "", id="not in one word"),
        pytest.param(("X-Authorization", "Bearer abc"), "", id="not of another header"),
    ],
)
def test_the_token_that_a_request_shows(header: tuple[str, str], token: str) -> None:
    assert bearer(ask(header)) == token


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        pytest.param([shown("one")], None, id="the first"),
        pytest.param([shown("two")], None, id="the second"),
        pytest.param([shown("on")], WrongToken, id="a part of one"),
        pytest.param([shown("ONE")], WrongToken, id="one in capitals"),
        pytest.param([shown("é")], WrongToken, id="no ASCII"),
        pytest.param([("Authorization", "Bearer ")], MissingToken, id="an empty one"),
        pytest.param([("Authorization", "Basic one")], MissingToken, id="one of another scheme"),
        pytest.param([], MissingToken, id="none"),
    ],
)
def test_a_request_needs_one_of_the_tokens(headers: list[tuple[str, str]], refused: type[DaemonError] | None) -> None:
    assert outcome(lambda request: check_token(request, ("one", "", "two")), ask(*headers)) is refused


def test_every_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def compare(shown: bytes, token: bytes) -> bool:
        compared.append(token)
        return shown == token

    monkeypatch.setattr(hmac, "compare_digest", compare)

    assert matches("one", ("one", "two"))
    assert compared == [b"one", b"two"]


def test_a_token_of_any_characters_is_compared_and_an_empty_one_of_ours_matches_nothing() -> None:
    assert not matches("\u20ac", ("secret", "?"))  # in gRPC's metadata, which are UTF-8
    assert not matches("", ("", ""))


OURS = (
    "127.0.0.1:8081", "localhost:8081", "LocalHost:8081", "[::1]:8081", "gpu1:8081", "models.example.com",
    "models.example.com:443", "edge:9000",
)  # fmt: skip


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:8081", "localhost", "localhost:80", "localhost:8081.evil.example", "edge",
     "edge:8081", "models.example.com.evil.example", "a@localhost:8081", "localhost.:8081"],
)  # fmt: skip
def test_a_foreign_host_is_refused_and_one_of_ours_answered(host: str) -> None:
    for ours in OURS:
        check_host(ask(("Host", ours)), HOSTS)

    sentence = f"Host `{host}` is not allowed at this address: allow the name with `--allowed-host`."
    with pytest.raises(Forbidden, match=f"^{re.escape(sentence)}$"):
        check_host(ask(("Host", host)), HOSTS)


@pytest.mark.parametrize(("port", "tls", "ours"), [(80, False, True), (443, True, True), (443, False, False)])
def test_the_port_that_the_scheme_implies_may_be_left_out(port: int, tls: bool, ours: bool) -> None:
    assert ("localhost" in own_hosts([], port, [], tls=tls)) is ours


@pytest.mark.parametrize(
    "target", ["http://evil.example/models", "http://evil.example?x", "HTTP://evil.example:8081#/localhost:8081"]
)
def test_a_whole_url_in_the_request_line_wins_over_the_host_header(target: str) -> None:
    request = ask(HOST, target=target)

    assert host_of(request) == ("evil.example:8081" if "8081" in target else "evil.example")
    assert [host_of(ask(HOST, target=each)) for each in ("*", f"/models?url={target}")] == [HOST[1]] * 2
    with pytest.raises(Forbidden):
        check_host(request, HOSTS)


@pytest.mark.parametrize(
    ("token", "headers", "refused"),
    [
        pytest.param("key", [HOST, shown("key")], None, id="the right one"),
        pytest.param("key", [HOST], MissingToken, id="no token"),
        pytest.param("key", [HOST, shown("guess")], WrongToken, id="a wrong token"),
        pytest.param("key", [HOST, shown("key"), ("Origin", "http://127.0.0.1:8081")], Forbidden, id="a page"),
        pytest.param("key", [("Host", "evil.example"), shown("key")], Forbidden, id="a foreign host, with the token"),
        pytest.param("", [HOST], None, id="none is asked for"),
        *(
            pytest.param("", [HOST, ("origin", value)], Forbidden, id=f"origin {value!r}")
            for value in ("https://evil.example", "null", "")
        ),
        pytest.param("", [], Forbidden, id="and no host named"),
    ],
)
def test_management(token: str, headers: list[tuple[str, str]], refused: type[DaemonError] | None) -> None:
    assert outcome(management_check(token, HOSTS), ask(*headers)) is refused
    if "origin" in dict(headers):
        with pytest.raises(Forbidden, match=r"^Requests of web pages are rejected: remove the `Origin` header\.$"):
            check_origin(ask(*headers))


@pytest.mark.parametrize(
    ("token", "headers", "refused"),
    [
        pytest.param("", [], None, id="open where there is no token"),
        pytest.param("", [shown("guess")], None, id="whatever a client shows"),
        pytest.param("key", [shown("key")], None, id="its own token"),
        pytest.param("key", [shown("master")], None, id="the token of management"),
        pytest.param("key", [shown("guess")], WrongToken, id="no other"),
        pytest.param("key", [], MissingToken, id="not none"),
        pytest.param("key", [("Host", "any"), ("Origin", "a"), shown("key")], None, id="a page and any host"),
    ],
)
def test_inference(token: str, headers: list[tuple[str, str]], refused: type[DaemonError] | None) -> None:
    assert outcome(inference_check(token, "master"), ask(*headers)) is refused


def tell_headers(exchange: Exchange, path: list[str]) -> None:
    """Answer with the names of the headers that arrived here."""
    exchange.respond(Response(200, " ".join(name for name, _ in exchange.request.headers).encode()))


def answered(application: Callable[[Exchange], None], *headers: str, target: str = "/models") -> tuple[int, bytes]:
    peer = Server(application).connect()
    peer.send("\r\n".join((f"GET {target} HTTP/1.1", "Host: a", *headers, "", "")).encode())
    (answer,) = peer.answers
    return answer.status, answer.body


def test_a_missing_token_is_asked_for() -> None:
    peer = Server(Router(guarded({"models": tell_headers}, inference_check("key", "")))).connect()

    peer.send(b"GET /models HTTP/1.1\r\nHost: a\r\n\r\n")

    (answer,) = peer.answers
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert b"key" not in answer.body.lower().replace(b"invalidkeyexception", b"")


def test_one_route_below_a_guarded_segment_may_be_open() -> None:
    routes = {"v9": tell_headers, "health": tell_headers}
    router = Router(guarded(routes, inference_check("key", ""), unguarded=("v9/health",)))

    targets = ("/v9/health", "/v9/health/live", "/v9", "/v9/models", "/health")
    assert [answered(router, target=each)[0] for each in targets] == [200, 200, 401, 401, 401]


@pytest.mark.parametrize(
    ("header", "body"),
    [
        pytest.param("Authorization: Bearer key", b"Host", id="ours is hidden"),
        pytest.param("Authorization: Bearer other", b"Host Authorization", id="another is the handler's business"),
    ],
)
def test_a_handler_does_not_see_our_token(header: str, body: bytes) -> None:
    router = Router(guarded({"models": tell_headers}, inference_check("", "key"), hide=("", "key")))

    assert answered(router, header) == (200, body)


def test_a_request_that_waits_for_its_model_is_checked_again_and_its_token_is_hidden_then() -> None:
    waiting: list[Callable[[], None]] = []

    def soon(exchange: Exchange, path: list[str]) -> None:
        if not waiting:
            raise Loading("Not yet.")
        tell_headers(exchange, path)

    def hold(exchange: Exchange, error: DaemonError, again: Callable[[Exchange], None]) -> bool:
        waiting.append(lambda: again(exchange))
        return isinstance(error, Loading)

    peer = Server(Router(guarded({"models": soon}, inference_check("key", ""), hide=("key",)), hold)).connect()
    peer.send(b"GET /models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer key\r\n\r\n")
    assert not peer.answers

    waiting[0]()

    assert [(answer.status, answer.body) for answer in peer.answers] == [(200, b"Host")]
