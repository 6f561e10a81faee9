"""Listening sockets, and the lock that a living daemon holds.

Listeners are made from sockets, so that they can also come from elsewhere: a service manager, or
the daemon that this one replaces.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import socket
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tsctl.daemon import paths
from tsctl.daemon.config.endpoints import EVERY_ADDRESS, Endpoint, parse_address
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.http.listener import Listener, handshake_time

BACKLOG = 1024
LOOK_EVERY = 1.0  # seconds between two looks whether the loop has closed a socket
LONGEST_PAUSE = 1.0  # seconds before another try to listen
_GOODBYE = 2.0  # seconds that a client may take to agree to the end of a TLS connection


class Lock:
    """A file that is locked while this process lives, by its `descriptor`, and contains its pid.

    Raises:
        StartError: another process has the lock; the message is `taken` with `{pid}` filled in.
    """

    def __init__(self, file: Path, taken: str, hint: str) -> None:
        self._file = file
        while True:
            self.descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = os.read(self.descriptor, 20).decode("ascii", "replace").strip() or "unknown"
                os.close(self.descriptor)
                raise StartError(taken.format(pid=pid), hint) from None
            if self._still_there():
                break
            os.close(self.descriptor)  # its owner removed it between our opening and our locking
        os.ftruncate(self.descriptor, 0)
        self.claim()

    @classmethod
    def inherited(cls, file: Path, descriptor: int) -> "Lock":
        """Share the lock of another daemon; the lock is free when both have closed it."""
        lock = cls.__new__(cls)
        lock._file, lock.descriptor = file, descriptor
        return lock

    def claim(self) -> None:
        """Write our pid: one write, as long as the old content, so that readers never see a mixture."""
        width = max(0, os.fstat(self.descriptor).st_size - 1)
        with contextlib.suppress(OSError):  # the disk is full: the lock itself counts
            os.pwrite(self.descriptor, f"{os.getpid():>{width}}\n".encode(), 0)

    def _still_there(self) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self.descriptor), self._file.stat())
        return False

    def release(self) -> None:
        """Remove the file while still locked, so that no stale file is visible unless its directory is closed to us."""
        with contextlib.suppress(OSError):
            self._file.unlink()
        os.close(self.descriptor)

    def forget(self) -> None:
        """Leave the lock to the other daemon."""
        os.close(self.descriptor)


def bind_control(path: Path) -> tuple[socket.socket, int]:
    """Bind the control socket, 0600. The caller holds the lock, so an existing file is stale.

    Returns:
        The socket, and the inode of its file.

    Raises:
        StartError: the socket cannot be bound.
    """
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        path.unlink(missing_ok=True)
        control.bind(str(path))
    except OSError as error:
        control.close()
        raise StartError(f"cannot listen on `{path}`: {error.strerror}") from None
    finally:
        os.umask(mask)
    control.listen(BACKLOG)
    control.setblocking(False)
    return control, path.stat().st_ino


def unlink_if_ours(path: Path, inode: int) -> None:
    """Remove the control socket's file, unless another daemon has replaced the file."""
    with contextlib.suppress(OSError):  # such as a directory that is closed to us meanwhile
        if path.stat().st_ino == inode:
            path.unlink()


def bind_tcp(text: str, flag: str = "--inference-address") -> socket.socket:
    """Bind and listen on an address; port 0 lets the kernel choose. The hint names `flag`.

    `::` and `*` are every address of this machine, of IPv4 and IPv6; of IPv4 alone where the kernel has no IPv6.

    Raises:
        StartError: the address is wrong, taken, or not this machine's.
    """
    host, port = parse_address(text)
    if host == EVERY_ADDRESS and not _has_ipv6():
        host = "0.0.0.0"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except UnicodeError:  # from the codec for host names
        raise StartError(f"`{host}` is no host name") from None
    except OSError as error:
        raise StartError(f"cannot listen on `{text}`: {error.strerror or error}") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if host == EVERY_ADDRESS:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # whatever net.ipv6.bindv6only says
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise StartError(
                f"port {port} on {host} is in use by another program", f"choose another with `{flag}`"
            ) from None
        raise StartError(f"cannot listen on `{text}`: {error.strerror or error}") from None
    listening.setblocking(False)
    return listening


def _has_ipv6() -> bool:
    """Return whether this machine has addresses of IPv6: a kernel may be without, or have it switched off."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind((EVERY_ADDRESS, 0))
    except OSError:
        return False
    return True


def take_place(socket_path: Path, state_dir: Path) -> tuple[Lock, Lock]:
    """Create the runtime and state directories, and lock both.

    Returns:
        The locks of the control socket and of the state directory.

    Raises:
        StartError: another daemon holds a lock, or a directory cannot be used.
    """
    try:
        paths.check_socket_path(socket_path)
        paths.make_private(socket_path.parent, strict=socket_path == paths.default_socket())
        paths.make_private(state_dir, strict=False)
    except paths.PathError as error:
        raise StartError(str(error)) from None
    try:
        listens = f"a daemon with pid {{pid}} already listens on `{socket_path}`"
        control = Lock(paths.pid_file(socket_path), listens, "stop it with `tsctl stop`, or use another `--socket`")
        uses = f"the daemon with pid {{pid}} already uses the state directory `{state_dir}`"
        try:
            return control, Lock(state_dir / "lock", uses, "give this one its own with `--state-dir`")
        except BaseException:
            control.release()
            raise
    except OSError as error:
        raise StartError(f"cannot write `{error.filename}`: {error.strerror}") from None


def bind_endpoints(endpoints: Sequence[Endpoint]) -> list[socket.socket]:
    """Bind each endpoint; all or none.

    Raises:
        StartError: one cannot be bound.
    """
    bound: list[socket.socket] = []
    try:
        for endpoint in endpoints:
            host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
            bound.append(bind_tcp(f"{host}:{endpoint.port}", endpoint.flag))
    except BaseException:
        for listening in bound:
            listening.close()
        raise
    return bound


class SupervisedListener:
    """A listener at its socket, for the supervision (supervision.py).

    The loop gets a copy of the socket: where accept(2) fails (ENOMEM, ENOBUFS, or EPERM of a filter), uvloop closes the
    socket for good, and tells nobody.

    Args:
        name: for people and metrics.
        control: the socket is the control socket.

    Attributes:
        listener: as given.
    """

    longest_pause = LONGEST_PAUSE

    def __init__(
        self, name: str, listener: Listener, listening: socket.socket, tls: ssl.SSLContext | None = None,
        *, control: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.listener = listener
        self._listening = listening
        self._tls = tls
        self._control = control
        self._copy = listening
        self._server: asyncio.Server | None = None
        self._held = False

    def __repr__(self) -> str:
        return f"<SupervisedListener {self.name}>"

    async def begin(self) -> None:
        """Accept connections.

        Raises:
            OSError: the socket cannot be used.
        """
        copy, loop, listener = self._listening.dup(), asyncio.get_running_loop(), self.listener
        how: dict[str, Any] = {}
        try:
            if self._control:
                # From Python 3.13 on a loop removes the file when it closes the socket: another daemon may have it.
                how = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
                self._server = await loop.create_unix_server(listener.accept, sock=copy, backlog=BACKLOG, **how)
            else:
                if self._tls is not None:
                    how = {"ssl_handshake_timeout": handshake_time(listener.limits), "ssl_shutdown_timeout": _GOODBYE}
                server = loop.create_server(listener.accept, sock=copy, backlog=BACKLOG, ssl=self._tls, **how)
                self._server = await server
        except BaseException:
            copy.close()
            raise
        self._copy = copy

    async def ended(self) -> str:
        """Wait until the loop has closed its copy of the socket."""
        while self._held or self._copy.fileno() != -1:  # noqa: ASYNC110 - uvloop tells nobody
            await asyncio.sleep(LOOK_EVERY)
        return "the event loop has closed its socket: accept(2) had failed"

    def hold(self) -> None:
        """Let new connections wait in the socket's queue, for this daemon or another that has the socket, too."""
        self._held = True
        if self._server is not None:
            self._server.close()

    async def resume(self) -> None:
        """Accept connections again; where that fails, the supervision tries it again."""
        with contextlib.suppress(OSError):
            await self.begin()
        self._held = False

    def close(self) -> None:
        """Accept no connection any more."""
        if self._server is not None:
            self._server.close()
        self._listening.close()
