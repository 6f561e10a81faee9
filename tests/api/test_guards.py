"""Admission at an endpoint: requests are accepted or rejected before their body is read."""

import asyncio
import socket
from pathlib import Path

import pytest

from tests.api.house import House
from tests.http.peer import Peer, Server
from tests.kit.build import make_config
from tests.kit.clients import FakeClient, FakeClients
from tsctl.daemon.api.guards import Guard, guard
from tsctl.daemon.config.endpoints import choose_endpoints
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.core.client import Clients
from tsctl.daemon.core.errors import Forbidden
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.messages import status_response
from tsctl.daemon.lifecycle.sockets import bind_endpoints

TOKENS = Tokens("m", "i")
INFERENCE, MANAGEMENT = {"inference_address": "127.0.0.1:0"}, {"management_address": "127.0.0.1:0"}
BOTH = INFERENCE | MANAGEMENT
ALONE = {"inference_address": "127.0.0.2:0"} | MANAGEMENT
METRICS = {"inference_address": "127.0.0.2:0", "metrics_address": "127.0.0.1:0"}
MANAGED = {"inference_address": "127.0.0.2:0", "management_address": "127.0.0.1:0", "metrics_address": "127.0.0.1:0"}


def answer(exchange: Exchange, path: list[str]) -> None:
    exchange.respond(status_response("here"))


def guarded(
    root: Path, flags: dict[str, str], tokens: Tokens = TOKENS, clients: Clients | None = None
) -> tuple[Guard, int]:
    """The guard of the last endpoint of a configuration, and the port it is at."""
    endpoint = choose_endpoints(make_config(root, allowed_host="a", **flags))[-1]
    (listening,) = bind_endpoints([endpoint])
    with listening:
        return guard(endpoint, listening, make_config(root, allowed_host="a", **flags), tokens, clients), (
            listening.getsockname()[1]
        )


def connect(guard: Guard) -> Peer:
    """A client of an endpoint with a route of each kind."""
    inference = dict.fromkeys(("predictions", "ping", "metrics"), answer)
    router = guard.router(inference, {"models": answer}, {"metrics": answer})
    return Server(router, admit=guard.admit if guard.asks else None).connect()


@pytest.mark.parametrize(
    ("flags", "statuses"),
    [
        pytest.param(INFERENCE, {"predictions": 401, "models": 404, "ping": 200, "metrics": 401}, id="inference"),
        pytest.param(ALONE, {"predictions": 404, "models": 401, "ping": 404, "metrics": 404}, id="management"),
        pytest.param(BOTH, {"predictions": 401, "models": 401, "ping": 200, "metrics": 401}, id="one for both"),
        pytest.param(METRICS, {"predictions": 404, "models": 404, "ping": 404, "metrics": 200}, id="metrics"),
    ],
)
def test_what_is_answered_without_a_token(tmp_path: Path, flags: dict[str, str], statuses: dict[str, int]) -> None:
    there, _ = guarded(tmp_path, flags)

    for segment, status in statuses.items():
        peer = connect(there)
        peer.send(f"GET /{segment} HTTP/1.1\r\nHost: a\r\n\r\n".encode())

        assert (segment, peer.statuses) == (segment, [status])


@pytest.mark.parametrize("target", ["/models", "/models/m/route"])
def test_where_management_asks_nobody_and_predictions_do_strangers_learn_no_models(tmp_path: Path, target: str) -> None:
    statuses = {}
    for flags in (BOTH, ALONE):
        there, _ = guarded(tmp_path, flags, Tokens(inference="i"))
        router = there.router({"models/*/invoke": answer}, {"models": answer, "models/*/route": answer}, {})
        for token in ("", "Authorization: Bearer i\r\n"):
            peer = Server(router).connect()
            peer.send(f"GET {target} HTTP/1.1\r\nHost: a\r\n{token}\r\n".encode())
            statuses["both" if flags is BOTH else "alone", token != ""] = peer.statuses[0]

    assert statuses == {("both", False): 401, ("both", True): 200, ("alone", False): 200, ("alone", True): 200}


@pytest.mark.parametrize(("address", "answered"), [("0.0.0.0:0", True), ("127.0.0.1:0", False)])
def test_the_machines_name_is_ours_where_all_its_addresses_are(tmp_path: Path, address: str, answered: bool) -> None:
    there, port = guarded(tmp_path, {"management_address": address}, Tokens())
    peer = connect(there)

    peer.send(f"GET /models HTTP/1.1\r\nHost: {socket.gethostname()}:{port}\r\n\r\n".encode())

    assert peer.statuses == [200 if answered else 403]


def head(target: str, *headers: str, length: int = 500) -> bytes:
    """The head of an upload; its body does not come."""
    lines = [f"POST {target} HTTP/1.1", "Host: a", f"Content-Length: {length}", *headers, "", ""]
    return "\r\n".join(lines).encode()


@pytest.mark.parametrize(
    ("flags", "target", "headers", "status"),
    [
        pytest.param(INFERENCE, "/predictions/m", (), 401, id="a prediction without a token"),
        pytest.param(INFERENCE, "/predictions/m", ("Authorization: Bearer x",), 403, id="with a wrong one"),
        pytest.param(INFERENCE, "/nowhere", (), 401, id="a route that is not there"),
        pytest.param(INFERENCE, "/ping", (), 401, id="an upload to an open route"),
        pytest.param(ALONE, "/models?url=x", (), 401, id="a registration without a token"),
        pytest.param(ALONE, "/models", ("Authorization: Bearer i",), 403, id="with the token of the predictions"),
        pytest.param(ALONE, "/models", ("Authorization: Bearer m", "Origin: http://x"), 403, id="from a web page"),
        pytest.param(BOTH, "/models", ("Authorization: Bearer i",), 403, id="a registration where both are answered"),
        pytest.param(BOTH, "/predictions/m", (), 401, id="a prediction where both are answered"),
    ],
)
def test_a_stranger_is_turned_away_before_the_body_is_read(
    tmp_path: Path, flags: dict[str, str], target: str, headers: tuple[str, ...], status: int
) -> None:
    there, _ = guarded(tmp_path, flags)
    peer = connect(there)

    peer.send(head(target, *headers))

    assert peer.statuses == [status]
    assert not peer.answers[0].keeps, "a body that is not read may still be on its way"


@pytest.mark.parametrize(
    "upload",
    [
        pytest.param(head("/predictions/m"), id="at once"),
        pytest.param(head("/predictions/m", "Expect: 100-continue"), id="expecting 100"),
        pytest.param(b"POST /predictions/m HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", id="in chunks"),
    ],
)
def test_a_stranger_is_not_asked_for_a_body(tmp_path: Path, upload: bytes) -> None:
    there, _ = guarded(tmp_path, INFERENCE)
    peer = connect(there)

    peer.send(upload)

    assert not bytes(peer.transport.written).startswith(b"HTTP/1.1 100")
    assert peer.statuses == [401]


def test_who_may_ask_or_sends_no_body_is_answered_on_a_connection_that_stays(tmp_path: Path) -> None:
    there, _ = guarded(tmp_path, BOTH)
    peer = connect(there)

    peer.send(head("/predictions/m", "Authorization: Bearer i", length=3) + b"abc")
    peer.send(head("/predictions/m", length=0))
    peer.send(head("/models", "Authorization: Bearer m", length=3) + b"abc")

    assert peer.statuses == [200, 401, 200]
    assert not guarded(tmp_path, INFERENCE, Tokens())[0].asks, "where there is no token"


def test_the_length_of_a_known_clients_body_may_have_more_zeros_than_numbers_have_digits(tmp_path: Path) -> None:
    there, _ = guarded(tmp_path, INFERENCE, Tokens(), FakeClients(FakeClient("mobile", bytes=10)))
    router, statuses = there.router({"predictions": answer}, {}, {}), []
    for length in ("3", "11"):
        peer = Server(router, HttpLimits(max_body=100), admit=there.admit).connect()
        peer.send(
            f"POST /predictions/m HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer mobile\r\n"
            f"Content-Length: {'0' * 5000}{length}\r\n\r\n".encode()
            + b"x" * int(length)
        )
        statuses += peer.statuses

    assert statuses == [200, 413]


PATHS = (
    "/models", "/models/m", "/models/m/1.0", "/models/m/1.0/set-default", "/models/m/invoke", "/models/invoke",
    "/v1/models/m", "/v1/models/m:predict", "/v1/models/m:explain", "/v1/models/m:train", "/v1/models", "/v1",
    "/v2/models/m/infer", "/invocations", "/predictions/m/1.0/a/b", "/explanations/m",
)  # fmt: skip


@pytest.mark.parametrize("target", PATHS)
@pytest.mark.parametrize("token", ["i", "m", "x", ""])
async def test_the_head_is_judged_as_the_route_judges_it(tmp_path: Path, target: str, token: str) -> None:
    """Where both share an address, both agree on whose a path is; open routes take no body from strangers."""
    there, _ = guarded(tmp_path, BOTH)
    shown = (f"Authorization: Bearer {token}",) if token else ()
    router = House(tmp_path).router_behind(there)
    whole, early = Server(router).connect(), Server(router, admit=there.admit).connect()

    whole.send(head(target, *shown, length=2) + b"{}")
    early.send(head(target, *shown, length=2))
    await asyncio.sleep(0)  # commands run in tasks

    at_the_route, at_the_head = (
        [status for status in peer.statuses if status in (401, 403)] for peer in (whole, early)
    )

    assert at_the_head == at_the_route


def test_metrics_beside_the_commands_need_no_token(tmp_path: Path) -> None:
    flags = MANAGED | {"management_address": "127.0.0.1:18081", "metrics_address": "127.0.0.1:18081"}
    (shared,) = [each for each in choose_endpoints(make_config(tmp_path, **flags)) if each.metrics]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = guard(shared, listening, make_config(tmp_path, allowed_host="a", **flags), TOKENS)
    peer = connect(there)

    peer.send(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    peer.send(b"GET /models HTTP/1.1\r\nHost: a\r\n\r\n")

    assert peer.statuses == [200, 401]


EVIL = ("Host: evil.example:8080", "Origin: http://evil.example:8080")
NO_TOKENS = Tokens("m", "")


def asked_by_page(there: Guard, target: str, *headers: str, method: str = "POST") -> int:
    """The status of a request, over a connection with the endpoint's limits."""
    limits = HttpLimits(max_body=1000, pages=there.pages)
    inference = dict.fromkeys(("predictions", "metrics", "ping"), answer)
    router = there.router(inference, {"models": answer}, {"metrics": answer})
    peer = Server(router, limits=limits, admit=there.admit if there.asks else None).connect()
    lines = "\r\n".join((f"{method} {target} HTTP/1.1", *headers, "Content-Length: 0", "", ""))
    peer.send(lines.encode())
    return peer.statuses[0]


@pytest.mark.parametrize(
    ("flags", "target"),
    [(INFERENCE, "/predictions"), (BOTH, "/predictions"), (METRICS, "/metrics")],
    ids=["predictions", "one address for all", "metrics"],
)
def test_a_page_whose_name_was_rebound_to_this_machine_is_refused(
    tmp_path: Path, flags: dict[str, str], target: str
) -> None:
    there, port = guarded(tmp_path, flags, NO_TOKENS)

    assert asked_by_page(there, target, *EVIL) == 403
    assert asked_by_page(there, target, *EVIL, method="OPTIONS") == 403
    assert asked_by_page(there, target, f"Host: evil.example:{port}", "ORIGIN: null") == 403
    assert asked_by_page(there, target, "Host: evil.example") == 200  # no page: a proxy, or curl
    own = f"127.0.0.1:{port}"
    assert asked_by_page(there, target, f"Host: {own}", f"Origin: http://{own}") == 200
    assert asked_by_page(there, target, f"Host: LOCALHOST:{port}", "Origin: http://elsewhere.example") == 200
    assert asked_by_page(there, target, "Host: a", "Origin: http://a") == 200  # `--allowed-host`


@pytest.mark.parametrize(
    ("flags", "tokens"),
    [
        pytest.param(INFERENCE, TOKENS, id="a token keeps pages away"),
        pytest.param({"inference_address": "0.0.0.0:0"}, NO_TOKENS, id="other machines have names of their own for it"),
        pytest.param(INFERENCE | {"cors_allowed_origin": "*"}, NO_TOKENS, id="pages of all origins may ask"),
        pytest.param(ALONE, NO_TOKENS, id="management has its own check of hosts"),
    ],
)
def test_pages_are_not_asked_for_their_host(tmp_path: Path, flags: dict[str, str], tokens: Tokens) -> None:
    there, _ = guarded(tmp_path, flags, tokens)

    assert there.pages is None


def test_the_page_that_cors_allows_may_ask_by_any_host(tmp_path: Path) -> None:
    there, _ = guarded(tmp_path, INFERENCE | {"cors_allowed_origin": "https://app.example"}, NO_TOKENS)

    assert asked_by_page(there, "/predictions", "Host: models.example", "Origin: https://app.example") == 200
    assert asked_by_page(there, "/predictions", *EVIL) == 403
    assert there.pages is not None
    told = r"^Host `evil\.example` is not allowed .* `http://evil\.example`\): allow the name with `--allowed-host`\.$"
    with pytest.raises(Forbidden, match=told):
        there.pages("http://evil.example", "evil.example")


@pytest.mark.parametrize(
    ("target", "key", "status"),
    [
        ("/predictions/m", "", 401), ("/predictions/m", "guess", 403), ("/predictions/m", "one", 200),
        ("/predictions/other", "one", 403), ("/predictions/other", "all", 200), ("/metrics", "all", 403),
        ("/predictions/m", "full", 429),
    ],
)  # fmt: skip
def test_a_client_that_is_known_is_kept_to_its_limits(tmp_path: Path, target: str, key: str, status: int) -> None:
    clients = FakeClients(FakeClient("one", models=("m",)), FakeClient("all"), FakeClient("full", most=0))
    there, _ = guarded(tmp_path, INFERENCE, Tokens(), clients)
    client = connect(there)

    client.send(head(target, *([f"Authorization: Bearer {key}"] if key else []), length=1) + b"x")

    assert client.statuses == [status]
