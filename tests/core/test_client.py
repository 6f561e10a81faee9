"""Under which name a client's share is counted."""

import pytest

from tests.kit.clients import FakeClient
from tsctl.daemon.core.client import LimitedClient, ShareHolder, holder_of


@pytest.mark.parametrize(
    ("client", "peer", "holder"),
    [
        pytest.param(None, "192.0.2.7:4711", ShareHolder("192.0.2.7", known=False), id="an address, whatever the port"),
        pytest.param(None, "2001:db8::7:4711", ShareHolder("2001:db8::7", known=False), id="of version 6"),
        pytest.param(None, "%5B2001:db8::7%5D:4711", ShareHolder("2001:db8::7", known=False), id="as gRPC writes it"),
        pytest.param(None, "pid:123", ShareHolder("pid", known=False), id="all at the control socket"),
        pytest.param(FakeClient("c"), "192.0.2.7:4711", ShareHolder("c", known=True), id="a known client"),
    ],
)
def test_a_share_is_counted_by_client_or_address(client: LimitedClient | None, peer: str, holder: ShareHolder) -> None:
    assert holder_of(client, peer) == holder
