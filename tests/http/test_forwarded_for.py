"""The client behind proxies: named by those that the operator trusts, and by nobody else."""

from pathlib import Path

import pytest

from tests.http.fake import FakeTransport
from tests.http.peer import Server
from tests.kit.build import make_config
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.http.forwarded_for import TrustedProxies
from tsctl.daemon.http.limits import HttpLimits

PROXIES = TrustedProxies(["10.0.0.0/8", "::1"])
PEER = "10.0.0.1:5000"


@pytest.mark.parametrize(
    ("written", "client"),
    [
        pytest.param(["203.0.113.9"], "203.0.113.9:0", id="one proxy"),
        pytest.param(["203.0.113.9, 10.0.0.7"], "203.0.113.9:0", id="two proxies"),
        pytest.param(["203.0.113.9", "10.0.0.7"], "203.0.113.9:0", id="two headers"),
        pytest.param(["6.6.6.6, 203.0.113.9"], "203.0.113.9:0", id="what the client wrote itself does not count"),
        pytest.param(["10.0.0.9"], "10.0.0.9:0", id="a client among the proxies"),
        pytest.param(["203.0.113.9:4711"], "203.0.113.9:0", id="with a port"),
        pytest.param(["[2001:db8::1]:4711"], "2001:db8::1:0", id="IPv6 with a port"),
        pytest.param(["2001:db8::1"], "2001:db8::1:0", id="IPv6"),
        pytest.param(['fe80::1%" 200 "x'], "fe80::1:0", id="a zone, which may be any text"),
        pytest.param(["::ffff:203.0.113.9"], "203.0.113.9:0", id="IPv4 written as IPv6"),
        pytest.param(["203.0.113.9, unknown"], PEER, id="a proxy that does not tell"),
        pytest.param(["203.0.113.9, , 10.0.0.7"], "10.0.0.7:0", id="nothing between two"),
        pytest.param([], PEER, id="no header"),
        pytest.param(["1.1.1.1, " * 40 + "10.0.0.7," * 40 + "10.0.0.8"], "10.0.0.7:0", id="at most 32 are read"),
    ],
)
def test_the_first_address_from_the_right_that_is_no_proxy_is_the_client(written: list[str], client: str) -> None:
    headers = [("X-Forwarded-For", each) for each in written]

    assert PROXIES.client_of(headers, PEER) == client


@pytest.mark.parametrize(
    ("peer", "trusted"),
    [(PEER, True), ("::1:80", True), ("::ffff:10.1.1.1:80", True), ("203.0.113.9:80", False), ("unknown", False)],
)
def test_only_named_proxies_are_trusted(peer: str, trusted: bool) -> None:
    assert PROXIES.trust(peer) is trusted


@pytest.mark.parametrize(
    ("peer", "expected"),
    [(("10.0.0.1", 5000), "203.0.113.9:0"), (("192.0.2.1", 5000), "192.0.2.1:5000")],
    ids=["a proxy", "anybody else"],
)
def test_a_request_has_the_client_that_its_proxy_names(
    monkeypatch: pytest.MonkeyPatch, peer: tuple[str, int], expected: str
) -> None:
    monkeypatch.setattr(
        FakeTransport, "get_extra_info", lambda self, name, default=None: peer if name == "peername" else default
    )
    seen: list[str] = []
    server = Server(lambda exchange: seen.append(exchange.request.peer), HttpLimits(1000, proxies=PROXIES))

    server.connect().send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n")

    assert seen == [expected]


def test_the_setting_names_networks(tmp_path: Path) -> None:
    config = make_config(tmp_path, trusted_proxies="127.0.0.1, 10.0.0.0/8")

    assert config.trusted_proxies == ("127.0.0.1", "10.0.0.0/8")
    with pytest.raises(StartError, match=r"`10\.0\.0\.1/8` is no address or network"):
        make_config(tmp_path, trusted_proxies="10.0.0.1/8")
