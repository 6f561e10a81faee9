"""Under which name a client's share is counted."""

import pytest

from tests.kit.clients import FakeClient
from tsctl.daemon.core.client import LimitedClient, holder_of


@pytest.mark.parametrize(
    ("client", "peer", "holder"),
    [
        pytest.param(None, "192.0.2.7:4711", "192.0.2.7", id="an address, whatever the port"),
        pytest.param(None, "2001:db8::7:4711", "2001:db8::7", id="of version 6"),
        pytest.param(None, "%5B2001:db8::7%5D:4711", "2001:db8::7", id="as gRPC writes it"),
        pytest.param(None, "pid:123", "pid", id="all at the control socket"),
        pytest.param(FakeClient("c"), "192.0.2.7:4711", "client c", id="a client that is known has its own"),
    ],
)
def test_a_share_is_counted_by_client_or_address(client: LimitedClient | None, peer: str, holder: str) -> None:
    assert holder_of(client, peer) == holder
