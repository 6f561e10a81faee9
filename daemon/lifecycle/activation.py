"""Listening sockets that a service manager holds and passes on: systemd's socket activation, sd_listen_fds(3).

    LISTEN_PID       the process that they are meant for
    LISTEN_FDS       how many there are, from descriptor 3 on
    LISTEN_FDNAMES   their names, separated by colons

The manager keeps the sockets open while the daemon restarts, so connections wait in the backlog and none is
refused. A socket is used for the endpoint, or the control socket, whose address is its own.
"""

import os
import socket
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tsctl.daemon.config.endpoints import Endpoint
from tsctl.daemon.core.errors import StartError

FIRST = 3  # SD_LISTEN_FDS_START
_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


@dataclass(frozen=True, slots=True)
class PassedSocket:
    """A listening socket that the service manager has passed on.

    Attributes:
        name: `FileDescriptorName=` of the socket unit; by default the unit's own name.
    """

    name: str
    listening: socket.socket

    @property
    def address(self) -> str:
        """The address, as a user writes it: HOST:PORT, or a path."""
        name = self.listening.getsockname()
        if self.listening.family == socket.AF_UNIX:
            return str(name)
        host, port = name[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def take_passed(environment: MutableMapping[str, str], pid: int) -> list[PassedSocket]:
    """Take over the sockets meant for this process, which its children do not inherit; remove the variables.

    Raises:
        StartError: a variable is no number, or a descriptor is no listening stream socket.
    """
    given = {name: environment[name] for name in _VARIABLES if name in environment}
    if given.get("LISTEN_PID") != str(pid):
        return []  # meant for another process: descriptor 3 is something else here
    for name in given:
        del environment[name]
    count = given.get("LISTEN_FDS", "")
    if not count.isdecimal():
        raise StartError(f"LISTEN_FDS is `{count}`, and no number of sockets", "the service manager sets LISTEN_FDS")
    names = given.get("LISTEN_FDNAMES", "").split(":")
    return [_taken(FIRST + index, names[index] if index < len(names) else "") for index in range(int(count))]


def match_sockets(
    passed: Sequence[PassedSocket], endpoints: Sequence[Endpoint], control: Path
) -> tuple[list[socket.socket | None], socket.socket | None]:
    """Return which socket each endpoint and the control socket use; None for one that the daemon binds itself.

    Raises:
        StartError: a socket's address is none of the daemon's.
    """
    ours: socket.socket | None = None
    matched: list[socket.socket | None] = [None] * len(endpoints)
    for each in passed:
        if each.listening.family == socket.AF_UNIX:
            if ours is not None or each.address != str(control):
                raise _foreign(each, "its socket unit names the path of `--socket`, once")
            ours = each.listening
            continue
        free = (index for index, endpoint in enumerate(endpoints) if matched[index] is None)
        found = next((index for index in free if listens_at(each.listening, endpoints[index])), None)
        if found is None:
            raise _foreign(
                each, f"name it with `--inference-address {each.address}`, or take it out of the socket unit"
            )
        matched[found] = each.listening
    return matched, ours


def listens_at(listening: socket.socket, endpoint: Endpoint) -> bool:
    """Return whether a TCP socket has the address of an endpoint."""
    host, port = listening.getsockname()[:2]
    if port != endpoint.port:
        return False
    if host == "::" and endpoint.host == "0.0.0.0":
        return not listening.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    try:
        found = socket.getaddrinfo(endpoint.host, port, listening.family, socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return any(address[0] == host for *_, address in found)


def _taken(descriptor: int, name: str) -> PassedSocket:
    said = f"descriptor {descriptor} of LISTEN_FDS{f' (`{name}`)' if name else ''}"
    try:
        listening = socket.socket(fileno=descriptor)
    except OSError as error:
        raise StartError(f"{said} is no socket: {error.strerror}", "the service manager opens the sockets") from None
    os.set_inheritable(descriptor, False)
    listening.setblocking(False)
    stream = listening.family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)
    if not (
        stream
        and listening.type == socket.SOCK_STREAM
        and listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    ):
        listening.close()
        raise StartError(
            f"{said} is no listening stream socket", "write `ListenStream=` and `Accept=no` in the socket unit"
        )
    return PassedSocket(name, listening)


def _foreign(passed: PassedSocket, hint: str) -> StartError:
    name = f" (`{passed.name}`)" if passed.name else ""
    return StartError(
        f"the service manager passed on a socket at `{passed.address}`{name}, which is no address of this daemon", hint
    )
