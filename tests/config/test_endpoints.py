"""Which addresses there are, what is served at each, and when it is https."""

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path

import pytest
import uvloop

from tests.certificate import make_certificate, needs_openssl
from tests.kit.build import make_config
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.endpoints import Endpoint, choose_endpoints, tls_context
from tsctl.daemon.core.clock import LoopClock
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.listener import Listener
from tsctl.daemon.http.messages import status_response
from tsctl.daemon.lifecycle.sockets import bind_endpoints, listen

PAIR = {"certificate_file": "/c.pem", "private_key_file": "/k.pem"}


def choose(root: Path, **flags: str) -> list[Endpoint]:
    return choose_endpoints(make_config(root, **flags))


def shown(endpoints: list[Endpoint]) -> list[str]:
    """Each endpoint as a URL, and what it serves."""
    return [
        f"http{'s' * e.tls}://{e.host}:{e.port}"
        f"{' inference' * e.inference}{' management' * e.management}{' metrics' * e.metrics}"
        for e in endpoints
    ]


@pytest.mark.parametrize(
    ("flags", "endpoints"),
    [
        pytest.param({}, ["http://127.0.0.1:8080 inference"], id="by default there is no management"),
        pytest.param({"management_address": "127.0.0.1"},
            ["http://127.0.0.1:8080 inference", "http://127.0.0.1:8081 management"], id="one asked for has its port"),
        pytest.param({"management_address": "http://127.0.0.1:8080/"},
            ["http://127.0.0.1:8080 inference management"], id="equal addresses are one"),
        pytest.param({"inference_address": "[::1]:9000", "management_address": "[::1]:9000"},
            ["http://::1:9000 inference management"], id="of any family"),
        pytest.param({"inference_address": "a", "management_address": "b"} | PAIR,
            ["https://a:8443 inference", "https://b:8444 management"], id="a certificate makes both https"),
        pytest.param({"inference_address": "HTTPS://a:1", "management_address": "http://a:2"} | PAIR,
            ["https://a:1 inference", "http://a:2 management"], id="but for one that says http"),
        pytest.param({"metrics_address": "127.0.0.1"},
            ["http://127.0.0.1:8080 inference", "http://127.0.0.1:8082 metrics"], id="metrics may have their own"),
        pytest.param({"metrics_address": "m"} | PAIR,
            ["https://127.0.0.1:8080 inference", "https://m:8445 metrics"], id="which is https where the others are"),
        pytest.param({"metrics_address": "http://m:8082"} | PAIR,
            ["https://127.0.0.1:8080 inference", "http://m:8082 metrics"], id="unless it says http"),
        pytest.param({"metrics_address": "127.0.0.1:8080"},
            ["http://127.0.0.1:8080 inference metrics"], id="or the one of the predictions"),
        pytest.param({"management_address": "a:1", "metrics_address": "a:1"},
            ["http://127.0.0.1:8080 inference", "http://a:1 management metrics"], id="or the one of the commands"),
        pytest.param({"inference_address": "a:0", "management_address": "a:0", "metrics_address": "a:0"},
            ["http://a:0 inference management", "http://a:0 metrics"], id="a port that is to be chosen is its own"),
        pytest.param({"metrics_address": "m:1", "metrics": "false"},
            ["http://127.0.0.1:8080 inference"], id="none, where there are no metrics"),
        pytest.param({"inference_address": "18701"},
            ["http://127.0.0.1:18701 inference"], id="a number is a port of this machine alone"),
        pytest.param({"inference_address": "none"}, [], id="no TCP at all"),
        pytest.param({"inference_address": "None", "management_address": "a:1", "metrics_address": "a:2"},
            ["http://a:1 management", "http://a:2 metrics"], id="or none for predictions"),
    ],
)  # fmt: skip
def test_the_addresses(tmp_path: Path, flags: dict[str, str], endpoints: list[str]) -> None:
    assert shown(choose(tmp_path, **flags)) == endpoints


@pytest.mark.parametrize("address", ["unix:/c.sock", "unix:///c.sock", "UNIX:/c.sock"])
def test_an_address_that_is_the_control_socket_needs_no_other(tmp_path: Path, address: str) -> None:
    addresses = dict.fromkeys(("inference_address", "management_address", "metrics_address"), address)

    assert choose(tmp_path, socket="/c.sock", **addresses) == []


def test_another_unix_socket_is_refused_with_the_way_to_it(tmp_path: Path) -> None:
    with pytest.raises(StartError) as caught:
        choose(tmp_path, inference_address="unix:/i.sock")

    assert caught.value.hint.startswith("add `--socket /i.sock`, and set TSCTL_SOCKET to that")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        pytest.param({"inference_address": "https://a:1"},
            "--inference-address: `https://a:1` asks for https, and there is no certificate",
            id="https without a certificate"),
        pytest.param({"management_address": "https://a"}, "--management-address: `https://a` asks for https",
            id="neither for management"),
        pytest.param({"certificate_file": "/c.pem"}, "`--certificate-file` is given without `--private-key-file`",
            id="a certificate without its key"),
        pytest.param({"private_key_file": "/k.pem"}, "`--private-key-file` is given without `--certificate-file`",
            id="a key without its certificate"),
        pytest.param({"inference_address": "http://a"} | PAIR, "every address says http://",
            id="a certificate that nobody would use"),
        pytest.param({"inference_address": "none"} | PAIR, "there is no address to use it at",
            id="a certificate without an address"),
        pytest.param({"inference_address": "http://a:1", "management_address": "https://a:1"} | PAIR,
            "cannot be both http and https", id="one port for both"),
        pytest.param({"inference_address": "ftp://x"}, "is neither http:// nor https://", id="another scheme"),
        *(
            pytest.param({name: "unix:/x"}, "`unix:/x`: the one Unix socket is the control socket, and it is `",
                id=f"another Unix socket: {name}")
            for name in ("inference_address", "management_address", "metrics_address")
        ),
        pytest.param({"metrics_address": "https://a"}, "--metrics-address: `https://a` asks for https",
            id="nor for metrics"),
        pytest.param({"management_address": "https://a:1", "metrics_address": "http://a:1"} | PAIR,
            "`https://a:1` and `http://a:1` are one port", id="one port for both, of metrics"),
        pytest.param({"management_address": "a:99999"}, "is no address to listen on", id="no address"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_stops_the_start(tmp_path: Path, flags: dict[str, str], sentence: str) -> None:
    with pytest.raises(StartError) as caught:
        choose(tmp_path, **flags)

    assert sentence in str(caught.value)


def test_without_a_certificate_there_is_no_tls(tmp_path: Path) -> None:
    assert tls_context(make_config(tmp_path)) is None


@needs_openssl
def test_tls_is_at_least_1_2(tmp_path: Path) -> None:
    made = make_certificate(tmp_path)

    context = tls_context(_with_certificate(tmp_path, made.certificate, made.key))

    assert context is not None
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def _with_certificate(root: Path, certificate: Path, key: Path) -> Config:
    return make_config(root, certificate_file=str(certificate), private_key_file=str(key))


@needs_openssl
def test_a_certificate_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    made, other = make_certificate(tmp_path), make_certificate(tmp_path / "other", password="sesame")
    (tmp_path / "empty").touch()

    for certificate, key, sentence in (
        (made.certificate, other.key, "is encrypted"),
        (tmp_path / "empty", made.key, "are no certificate and its key"),
        (made.certificate, made.certificate, "are no certificate and its key"),
        (tmp_path / "missing", made.key, "No such file or directory"),
    ):
        with pytest.raises(StartError) as caught:
            tls_context(_with_certificate(tmp_path, certificate, key))

        assert sentence in str(caught.value)


@needs_openssl
def test_a_certificate_that_is_too_weak_is_refused_with_what_to_make_instead(tmp_path: Path) -> None:
    made = make_certificate(tmp_path, rsa_bits=512)

    with pytest.raises(StartError, match="its key is too small") as caught:
        tls_context(_with_certificate(tmp_path, made.certificate, made.key))

    assert "2048 bits" in caught.value.hint


def test_either_all_are_bound_or_none(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        flags = {"inference_address": f"127.0.0.1:{port}", "management_address": f"127.0.0.1:{taken.getsockname()[1]}"}

        with pytest.raises(StartError, match="is in use by another program") as caught:
            bind_endpoints(choose(tmp_path, **flags))

        assert "--management-address" in caught.value.hint
        socket.create_server(("127.0.0.1", port)).close()


def answer(exchange: Exchange, path: list[str]) -> None:
    exchange.respond(status_response("here"))


@needs_openssl
def test_a_connection_over_tls_is_answered_and_closed_when_it_should(tmp_path: Path) -> None:
    assert b"here" in uvloop.run(answer_over_tls(tmp_path))


async def answer_over_tls(tmp_path: Path) -> bytes:
    made = make_certificate(tmp_path)
    context = tls_context(_with_certificate(tmp_path, made.certificate, made.key))
    trusting = ssl.create_default_context(cafile=str(made.certificate))
    listener = Listener(lambda exchange: answer(exchange, []), HttpLimits(1000), LoopClock(asyncio.get_running_loop()))
    (listening,) = bind_endpoints(choose(tmp_path, inference_address="127.0.0.1:0"))
    server = await listen(listener, listening, context)
    try:
        reader, writer = await asyncio.open_connection(*listening.getsockname(), ssl=trusting)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(1.5):  # less than the two seconds that an unread body would be waited for
            answered = await reader.read()
        writer.close()
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            await writer.wait_closed()
    finally:
        server.close()
        listener.abort()
    return answered
