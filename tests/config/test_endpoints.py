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
from tsctl.daemon.lifecycle.sockets import SupervisedListener, bind_endpoints


def choose(root: Path, **flags: str) -> list[Endpoint]:
    return choose_endpoints(make_config(root, **flags))


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
    server = SupervisedListener("https", listener, listening, context)
    await server.begin()
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
