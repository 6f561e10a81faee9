"""The client of a call that a trusted proxy has passed on, by its metadata `x-forwarded-for`."""

from collections import Counter
from pathlib import Path

import pytest

from tests.extensions.grpc.client import GrpcHouse, grpc_house, prediction
from tsctl.daemon.http.forwarded_for import TrustedProxies
from tsctl.daemon.models.routing.route import parse_route

FORWARDED = "x-forwarded-for"


async def predict(served: GrpcHouse, told: str) -> bytes:
    call = served.call("Predictions", prediction("m", data=b"1"), metadata=((FORWARDED, told),))
    answer: bytes = (await served.settled(call)).prediction
    return answer


@pytest.mark.parametrize(
    ("trusted", "told", "client"),
    [
        pytest.param("127.0.0.0/8", "203.0.113.7", "203.0.113.7:0", id="a trusted proxy's word"),
        pytest.param("127.0.0.1", "6.6.6.6, 203.0.113.7, 127.0.0.9", "127.0.0.9:0", id="from the right"),
        pytest.param("127.0.0.0/8", "6.6.6.6, 2001:db8::1, 127.0.0.9", "2001:db8::1:0", id="over several proxies"),
        pytest.param("10.0.0.0/8", "203.0.113.7", "", id="any other's is not believed"),
        pytest.param("127.0.0.1", "nonsense", "", id="no address"),
        pytest.param("", "203.0.113.7", "", id="no proxy is trusted"),
    ],
)
async def test_the_client_in_the_access_log(tmp_path: Path, trusted: str, told: str, client: str) -> None:
    proxies = TrustedProxies([trusted]) if trusted else None
    async with grpc_house(tmp_path, proxies=proxies) as served:
        await served.house.serve("m")
        await predict(served, told)

        (peer,) = served.peers
        assert peer == client if client else peer.startswith("127.0.0.1:") and not peer.endswith(":0")


async def test_a_refused_call_is_its_clients_too(tmp_path: Path) -> None:
    async with grpc_house(tmp_path, tokens=("secret",), proxies=TrustedProxies(["127.0.0.1"])) as served:
        call = served.call("Predictions", prediction("m"), metadata=((FORWARDED, "203.0.113.7"),))
        with pytest.raises(served.grpc.aio.AioRpcError):
            await served.settled(call)

        assert served.peers == ["203.0.113.7:0"]


async def test_sticky_addresses_are_the_clients_and_not_the_proxys(tmp_path: Path) -> None:
    async with grpc_house(tmp_path, proxies=TrustedProxies(["127.0.0.1"])) as served:
        for version in ("1.0", "2.0"):
            await served.house.serve("m", version)
        served.house.registry.routes.put("m", parse_route("1.0=50 2.0=50", "ip"))
        for number in range(20):
            await predict(served, f"203.0.113.{number}")
            await predict(served, f"203.0.113.{number}")

        had = Counter({each.version: each.metrics.codes.get(200, 0) for each in served.house.registry})
        assert all(count and not count % 2 for count in had.values()), had  # both, and each client one of them
