"""The client of a request that a proxy has passed on: `X-Forwarded-For`, believed of proxies that the operator names.

    X-Forwarded-For: CLIENT, PROXY …      each proxy adds the address that it was asked from

Read from the right, the first address that is no trusted proxy's is the client: what stands before it, the client may
have written itself.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from itertools import islice

_HEADER = "x-forwarded-for"
_MOST_HOPS = 32


class TrustedProxies:
    """The proxies whose word counts.

    Args:
        networks: of their addresses, as `10.0.0.0/8`, or single addresses.
    """

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks = tuple(map(ip_network, networks))

    def __repr__(self) -> str:
        return f"<TrustedProxies {', '.join(map(str, self._networks))}>"

    def trust(self, peer: str) -> bool:
        """Return whether a connection's peer, ADDRESS:PORT, is one of them."""
        address = _address_of(peer.rpartition(":")[0])
        return address is not None and self._holds(address)

    def client_of(self, headers: Sequence[tuple[str, str]], peer: str) -> str:
        """Return the client of a request that a trusted proxy sent, as ADDRESS:0: proxies do not tell its port.

        Args:
            peer: the proxy's address and port, which are returned where the proxy names no address.
        """
        told = ",".join(value for name, value in headers if name.lower() == _HEADER)
        found = peer
        for text in islice(reversed(told.split(",")), _MOST_HOPS):
            address = _address_of(text)
            if address is None:
                break
            found = f"{address}:0"
            if not self._holds(address):
                break
        return found

    def _holds(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self._networks)


def _address_of(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address, which may have a port; None if the text is none."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])  # a zone is the proxy's own, and may be any text
    except ValueError:
        return None
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address
