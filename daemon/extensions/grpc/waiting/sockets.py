"""The bytes that have arrived on gRPC's connections, as the kernel counts them: gRPC itself does not say.

A connection is found among this process's open files by its peer's address, and by its descriptor from then on. The
descriptor is gRPC's: nothing here closes the file, and each look checks the peer, because descriptors are reused.
"""

import os
import socket
import struct
from collections.abc import Collection

_RECEIVED = struct.Struct("=128xQ")  # `tcpi_bytes_received` in Linux's `struct tcp_info`


class Sockets:
    """The sockets of connections, by peer: `HOST:PORT` as gRPC writes it."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}

    def received(self, peers: Collection[str]) -> dict[str, int]:
        """Return the bytes that each of the peers has sent since its connection began; ended ones are left out."""
        found: dict[str, int] = {}
        missing = []
        for peer in peers:
            file = self._files.get(peer)
            seen = None if file is None else _look(file)
            if seen is None or seen[0] != plain(peer):
                missing.append(peer)
            else:
                found[peer] = seen[1]
        if missing:
            wanted = {plain(peer): peer for peer in missing}
            files = {int(name) for name in os.listdir("/proc/self/fd")}
            self._files = {peer: file for peer, file in self._files.items() if file in files and peer not in missing}
            for file in sorted(files - set(self._files.values()), reverse=True):  # the youngest connection first
                seen = _look(file)
                if seen is not None and seen[0] in wanted:
                    peer = wanted.pop(seen[0])
                    self._files[peer], found[peer] = file, seen[1]
                    if not wanted:
                        break
        return found


def plain(peer: str) -> str:
    """Return an address as gRPC writes it, without the escaped brackets of IPv6."""
    return peer.replace("%5B", "").replace("%5D", "")


def _look(file: int) -> tuple[str, int] | None:
    """Return the peer of a TCP socket, and the bytes that have come from it; None for any other file."""
    try:
        opened = socket.socket(fileno=file)
    except OSError:
        return None
    try:
        if opened.family not in (socket.AF_INET, socket.AF_INET6) or opened.type != socket.SOCK_STREAM:
            return None
        host, port = opened.getpeername()[:2]
        (count,) = _RECEIVED.unpack(opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size))
        return f"{host.removeprefix('::ffff:')}:{port}", count
    except (OSError, struct.error):  # it listens, or has ended; or the kernel is of before 2015
        return None
    finally:
        opened.detach()
