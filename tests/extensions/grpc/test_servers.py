"""The gRPC side of a daemon: its addresses, certificate, tokens and end."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.api.house import House
from tests.certificate import make_certificate, needs_openssl
from tests.extensions.grpc.client import HEALTH, INFERENCE, PATIENCE, grpc
from tests.extensions.grpc.http2 import ENDS_THE_LOOP, grpc_call
from tests.kit.build import make_config
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.extensions.grpc.oip import SERVICES
from tsctl.daemon.extensions.grpc.protos.messages import message_class
from tsctl.daemon.extensions.grpc.server import GrpcServer, NotUtf8
from tsctl.daemon.extensions.grpc.servers import GrpcService
from tsctl.daemon.http.bounds.receiving import ReceiveBudget

pytestmark = pytest.mark.slow  # real sockets

ADDRESSES = ("grpcAddresses", "grpcManagementAddresses")


def made(
    root: Path, *addresses: str, tokens: Tokens | None = None, receiving: ReceiveBudget | None = None, **flags: str
) -> GrpcService:
    config = make_config(root, grpc_address=",".join(addresses), **flags)
    kernel = replace(House(root).kernel, config=config, tokens=tokens or Tokens("", ""), ready=lambda: True)
    kernel.bounds.receiving = receiving or ReceiveBudget()
    return GrpcService(kernel)


class Begun(NamedTuple):
    """Servers that answer, and the places of all: HOST:PORT."""

    servers: Sequence[GrpcServer]
    bound: list[str]

    @classmethod
    async def of(cls, service: GrpcService) -> "Begun":
        servers = service.servers({}, alone=True)
        for each in servers:
            await each.begin()
        return cls(servers, [url.partition("://")[2] for each in servers for url in each.urls])

    async def close(self, grace: float) -> None:
        await asyncio.gather(*(each.close(grace) for each in self.servers))


@asynccontextmanager
async def begun(service: GrpcService) -> AsyncIterator[Begun]:
    servers = await Begun.of(service)
    try:
        yield servers
    finally:
        await servers.close(0.0)


async def code_of_ping(address: str, token: str = "", credentials: Any = None, owner: str = INFERENCE) -> str:
    """Return the code of a call to an address: Ping, or the health's Check."""
    return await code_of(address, f"/{owner}/{'Ping' if owner == INFERENCE else 'Check'}", token, credentials)


async def code_of(address: str, method: str, token: str = "", credentials: Any = None) -> str:
    """Return the code of a call with an empty message."""
    channel = (
        grpc.aio.insecure_channel(address) if credentials is None else grpc.aio.secure_channel(address, credentials)
    )
    async with channel:
        metadata = (("authorization", f"Bearer {token}"),) if token else ()
        try:
            await channel.unary_unary(method)(b"", metadata=metadata, timeout=PATIENCE)
        except grpc.aio.AioRpcError as error:
            name: str = error.code().name
            return name
    return "OK"


async def test_servers_that_are_asked_for_again_are_new_ones_alone(tmp_path: Path) -> None:
    service = made(tmp_path, "127.0.0.1:0")
    async with begun(service) as before:
        pass
    async with begun(service) as servers:
        assert len(servers.servers) == 1 and servers.servers[0] is not before.servers[0]
        assert [await code_of_ping(address) for address in servers.bound] == ["OK"]


async def test_each_address_serves_predictions_and_health(tmp_path: Path) -> None:
    async with begun(made(tmp_path, "127.0.0.1:0", "http://localhost:0")) as servers:
        assert len(set(servers.bound)) == 2
        for address in servers.bound:
            assert [await code_of_ping(address, owner=owner) for owner in (INFERENCE, HEALTH)] == ["OK", "OK"]


@pytest.mark.parametrize(
    ("tokens", "codes"),
    [
        pytest.param(Tokens("", ""), ["OK", "OK", "OK"], id="none"),
        pytest.param(Tokens("boss", ""), ["OK", "OK", "OK"], id="predictions are open without a token of theirs"),
        pytest.param(Tokens("boss", "guest"), ["PERMISSION_DENIED", "OK", "OK"], id="either opens predictions"),
    ],
)
async def test_tokens_open_what_they_open_over_http(tmp_path: Path, tokens: Tokens, codes: list[str]) -> None:
    async with begun(made(tmp_path, "127.0.0.1:0", tokens=tokens)) as servers:
        assert [await code_of_ping(servers.bound[0], token) for token in ("", "guest", "boss")] == codes
        assert await code_of_ping(servers.bound[0], owner=HEALTH) == "OK"


async def test_the_addresses_of_predictions_and_of_management_are_told_apart(tmp_path: Path) -> None:
    service = made(tmp_path, "127.0.0.1:0", grpc_management_address="127.0.0.2:0")
    async with begun(service) as servers:
        assert service.document() == {
            name: [f"grpc://{place}"] for name, place in zip(ADDRESSES, servers.bound, strict=True)
        }


def test_without_addresses_both_lists_are_there_and_empty(tmp_path: Path) -> None:
    told = {name: value for each in House(tmp_path).services for name, value in each.document().items()}

    assert {name: told[name] for name in ADDRESSES} == {name: [] for name in ADDRESSES}


@pytest.mark.parametrize("inference", ["", "guest"], ids=["predictions are open", "predictions have a token"])
async def test_one_port_serves_predictions_and_with_its_token_management(tmp_path: Path, inference: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    service = made(tmp_path, address, tokens=Tokens("boss", inference), grpc_management_address=address)
    repository, management = SERVICES[0], "org.pytorch.serve.grpc.management.ManagementAPIsService"

    async with begun(service) as servers:
        assert servers.bound == [address]
        assert service.document() == {name: [f"grpc://{address}"] for name in ADDRESSES}
        for shown in ("", "guest", "boss"):
            predicts = await code_of(address, f"/{INFERENCE}/Ping", shown)
            manages = [
                await code_of(address, f"/{repository}/RepositoryIndex", shown),
                await code_of(address, f"/{management}/ListModels", shown),
            ]
            assert predicts == ("OK" if shown or not inference else "PERMISSION_DENIED")
            # There is no route of management in this test: the call has passed the token, and that is all.
            assert ("PERMISSION_DENIED" in manages) == (shown != "boss")


async def test_its_messages_are_noted_where_bodies_of_http_are(tmp_path: Path) -> None:
    """So the heap is trimmed when neither come any more."""
    noted: list[int] = []
    receiving = ReceiveBudget(noted=noted.append)

    async with begun(made(tmp_path, "127.0.0.1:0", receiving=receiving)) as servers:
        await code_of_ping(servers.bound[0])

    assert noted == [0]  # a Ping is an empty message


@needs_openssl
async def test_a_certificate_makes_every_address_tls(tmp_path: Path) -> None:
    pair = make_certificate(tmp_path)
    flags: dict[str, Any] = {"certificate_file": str(pair.certificate), "private_key_file": str(pair.key)}
    trusted = grpc.ssl_channel_credentials(pair.certificate.read_bytes())

    async with begun(made(tmp_path, "127.0.0.1:0", **flags)) as servers:
        assert await code_of_ping(servers.bound[0], credentials=trusted) == "OK"
        assert await code_of_ping(servers.bound[0]) == "UNAVAILABLE"


async def test_the_end_closes_watchers_at_once(tmp_path: Path) -> None:
    servers = await Begun.of(made(tmp_path, "127.0.0.1:0"))
    async with grpc.aio.insecure_channel(servers.bound[0]) as channel:
        watched = channel.unary_stream(f"/{HEALTH}/Watch")(b"")
        assert (await watched.read()) == b"\x08\x01"
        async with asyncio.timeout(PATIENCE):
            await servers.close(1000.0)

        kind = message_class("grpc.health.v1.HealthCheckResponse")
        assert kind.FromString(await watched.read()).status == 2


def test_an_address_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="`a:b:c` is no address"):
        made(tmp_path, "a:b:c")


async def test_an_address_of_another_machine_is_named(tmp_path: Path) -> None:
    service = made(tmp_path, "192.0.2.1:7070")

    with pytest.raises(StartError, match=r"cannot listen for gRPC on `192\.0\.2\.1:7070`"):
        service.servers({}, alone=True)


async def end_the_loop(address: str) -> asyncio.StreamWriter:
    host, _, port = address.rpartition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(ENDS_THE_LOOP)
    return writer


async def test_a_server_whose_loop_a_client_has_ended_serves_again_at_its_port(tmp_path: Path) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # grpc leaves one unread
    async with begun(made(tmp_path, "127.0.0.1:0")) as servers, asyncio.timeout(PATIENCE):
        (server,) = servers.servers
        async with grpc.aio.insecure_channel(servers.bound[0]) as channel:
            watched = channel.unary_stream(f"/{HEALTH}/Watch")(b"")
            await watched.read()
            attacker = await end_the_loop(servers.bound[0])
            with pytest.raises(UnicodeDecodeError):
                await server.ended()

            await server.begin()

            assert await code_of_ping(servers.bound[0]) == "OK"
            assert not watched.done()  # what ran goes on
            await servers.close(1000.0)  # and ends with the daemon, as the call without an end does
            await watched.read()
            attacker.close()
            await attacker.wait_closed()


async def test_a_server_that_cannot_bind_its_port_again_frees_what_it_has_bound(tmp_path: Path) -> None:
    async with begun(made(tmp_path, "127.0.0.1:0")) as servers, asyncio.timeout(PATIENCE):
        (server,) = servers.servers
        right = server._addresses
        server._addresses = [*right, ("192.0.2.1", 7070)]
        with pytest.raises(StartError, match=r"192\.0\.2\.1:7070"):
            await server.begin()
        server._addresses = right

        await server.begin()
        await asyncio.gather(*server._former.values())  # else the kernel may give the call to their sockets

        assert await code_of_ping(servers.bound[0]) == "OK"


def failure_of(text: bytes) -> Any:
    """Return what `logging` takes of the exception of bytes that are not UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return type(error), error, error.__traceback__
    raise AssertionError("they are")


def logged(exception: Any) -> logging.LogRecord:
    return logging.LogRecord("grpc._cython.cygrpc", logging.ERROR, "", 0, "Invalid encoding on %s", (b"",), exception)


def test_texts_that_are_not_utf_8_are_told_by_a_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    kept = NotUtf8(lambda: now)

    assert not kept.filter(logged(failure_of(b"\xff\x1b[2J" + b"x" * 10_000)))
    assert not kept.filter(logged(failure_of(b"\xfe")))
    now = 60.0
    assert not kept.filter(logged(failure_of(b"\xfd")))

    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("a gRPC client sent text that is not UTF-8: b'\\xff\\x1b[2Jxxx")
    assert len(first) < 200 and second.endswith(r": b'\xfd'")


def test_other_errors_of_grpc_are_logged_as_they_are() -> None:
    kept = NotUtf8(lambda: 0.0)

    assert kept.filter(logged(None))
    assert kept.filter(logged((ValueError, ValueError("no"), None)))


async def test_a_call_with_metadata_that_are_not_utf_8_leaves_no_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("grpc._cython.cygrpc"), "propagate", True)
    async with begun(made(tmp_path, "127.0.0.1:0")) as servers:
        host, _, port = servers.bound[0].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(grpc_call(f"/{INFERENCE}/Ping".encode(), b"", {b"x-name": b"\xff\xfe"}))
        async with asyncio.timeout(PATIENCE):
            answer = b""
            while b"grpc-status" not in answer:
                answer += await reader.read(4096)
        writer.close()

    assert not [record for record in caplog.records if record.exc_info]
