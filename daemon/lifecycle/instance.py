"""The sockets and locks that make a process the daemon for its clients: addresses, the control socket, and two locks.

They are taken at the start, some of them from the service manager, or inherited from the replaced daemon; they are
left at the end, or handed over to the successor. Inherited sockets are the same sockets, so that
pending connections are accepted by either daemon, and the locks are held without a gap.
"""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tsctl.daemon import paths
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.endpoints import Endpoint
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.lifecycle.activation import PassedSocket, match_sockets
from tsctl.daemon.lifecycle.sockets import Lock, bind_control, bind_endpoints, take_place, unlink_if_ours
from tsctl.daemon.lifecycle.upgrade.messages import Bound, Expected, Inheritance


@dataclass
class Instance:
    """The daemon's sockets and locks.

    Attributes:
        inode: of the control socket's file; 0 if a service manager made the file, and keeps it.
        ours: True until handed over.
    """

    path: Path
    control: socket.socket
    inode: int
    bound: Sequence[tuple[Endpoint, socket.socket]]
    locks: tuple[Lock, Lock]
    ours: bool = True

    def inheritance(self, models: Sequence[Expected], *, stand_in: bool) -> Inheritance:
        """Return the inheritance of a new daemon; arguments as in that class."""
        bound = [Bound(each.flag, each.host, each.port, listening.fileno()) for each, listening in self.bound]
        locks = self.locks[0].descriptor, self.locks[1].descriptor
        return Inheritance(bound, self.control.fileno(), self.inode, locks, list(models), stand_in)

    def claim(self) -> None:
        """Write our pid into the lock files, where clients look for the daemon's."""
        for lock in self.locks:
            lock.claim()

    def hand_over(self) -> None:
        """Release everything to another daemon: remove no files, and close our copies of the locks."""
        self.ours = False
        for lock in self.locks:
            lock.forget()

    def leave(self) -> None:
        """Remove all traces that a client or another daemon would find."""
        if self.ours:
            unlink_if_ours(self.path, self.inode)
            for lock in self.locks:
                lock.release()


def take(config: Config, endpoints: Sequence[Endpoint], passed: Sequence[PassedSocket] = ()) -> Instance:
    """Lock everything, and bind the addresses that the service manager has passed no socket for.

    Raises:
        StartError: another daemon is running, or something cannot be used.
    """
    matched, control_given = match_sockets(passed, endpoints, config.socket)
    locks = take_place(config.socket, config.state_dir)
    try:
        free = [each for each, given in zip(endpoints, matched, strict=True) if given is None]
        ours = iter(bind_endpoints(free))
        bound = [(each, given or next(ours)) for each, given in zip(endpoints, matched, strict=True)]
        control, inode = (control_given, 0) if control_given is not None else bind_control(config.socket)
    except BaseException:
        for lock in locks:
            lock.release()
        raise
    return Instance(config.socket, control, inode, bound, locks)


def inherit(inheritance: Inheritance, config: Config, endpoints: Sequence[Endpoint]) -> Instance:
    """Use another daemon's sockets and locks; until `claim`, nothing on the disk changes.

    Raises:
        StartError: the settings now name other addresses.
    """
    for descriptor in (*inheritance.locks, inheritance.control, *(each.descriptor for each in inheritance.endpoints)):
        os.set_inheritable(descriptor, False)  # not for workers
    rest = list(inheritance.endpoints)
    found = []
    for endpoint in endpoints:
        address = (endpoint.flag, endpoint.host, endpoint.port)
        same = next((each for each in rest if (each.flag, each.host, each.port) == address), None)
        if same is None:
            raise _moved(f"`{endpoint.host}:{endpoint.port}` is new")
        rest.remove(same)
        found.append((endpoint, same.descriptor))
    if rest:
        raise _moved(f"`{rest[0].host}:{rest[0].port}` is no longer there")
    bound = [(endpoint, _listening(descriptor)) for endpoint, descriptor in found]
    files = paths.pid_file(config.socket), config.state_dir / "lock"
    locks = Lock.inherited(files[0], inheritance.locks[0]), Lock.inherited(files[1], inheritance.locks[1])
    control = _listening(inheritance.control)
    return Instance(config.socket, control, inheritance.inode, bound, locks, ours=False)


def _listening(descriptor: int) -> socket.socket:
    listening = socket.socket(fileno=descriptor)
    listening.setblocking(False)
    return listening


def _moved(what: str) -> StartError:
    return StartError(
        f"the addresses in the settings have changed: {what}", "an upgrade keeps them; stop the daemon and start it"
    )
