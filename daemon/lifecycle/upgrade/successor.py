"""The process of the new daemon, as the old one sees it until the takeover.

The new daemon is started as the old one was: the same arguments, environment and working directory, the same
stdout and stderr. So it has the old one's settings, as the installed code interprets them.
"""

import asyncio
import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from tsctl.daemon.lifecycle.activation import PassedSocket
from tsctl.daemon.lifecycle.notify import Notifier
from tsctl.daemon.lifecycle.upgrade.messages import (
    BrokenUpgradeMessage,
    Channel,
    FromNew,
    HungUp,
    Inheritance,
    TakeOver,
    decode_from_new,
)
from tsctl.daemon.metrics.totals import Totals
from tsctl.daemon.workers.processes.spawn import StartedTemplate
from tsctl.handlers.texts.signals import signal_name

LEAVE_TIME = 10.0  # seconds that an unwanted successor has to end its workers
_TAIL = 20  # lines


@dataclass(frozen=True, slots=True)
class Launch:
    """The way this daemon was started.

    Attributes:
        arguments: after `python -P -m tsctl.daemon`.
        directory: the working directory at the start, for relative paths.
        supervised: in the foreground, by a supervisor that knows this very process.
        parent: the descriptor of `--parent-fd`, which the new daemon inherits; None without.
        notifier: told of the daemon's life.
        passed: the listening sockets of the service manager.
        template: the first template, if its process was started already.
    """

    arguments: Sequence[str]
    directory: str
    supervised: bool = False
    parent: int | None = None
    notifier: Notifier = field(default_factory=Notifier)
    passed: Sequence[PassedSocket] = ()
    template: StartedTemplate | None = None


class SuccessorGone(Exception):
    """The new daemon will not take over.

    Args:
        details: its last output.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.details = details


class NewDaemon:
    """A new daemon, a process of this machine, until the takeover."""

    def __init__(
        self, process: subprocess.Popen[bytes], channel: Channel, inheritance: Inheritance, printed: "Printed"
    ) -> None:
        self.pid = process.pid
        self._inheritance = inheritance
        self._process = process
        self._channel = channel
        self._printed = printed
        self._pidfd = os.pidfd_open(process.pid)  # our child, and not reaped yet

    def __repr__(self) -> str:
        return f"<NewDaemon {self.pid}>"

    async def introduce(self) -> None:
        """Send the inheritance."""
        with contextlib.suppress(HungUp):  # its end is about to be reported
            await self._channel.tell(self._inheritance)

    async def hear(self, within: float | None = None) -> FromNew:
        """Receive a message.

        Args:
            within: seconds in which it has to be sent; None for any time.

        Raises:
            TimeoutError: it was not sent `within` these seconds, and none can be any more.
            SuccessorGone: the new daemon has ended, or broke the protocol.
        """
        hearing = self._channel.hear() if within is None else self._channel.hear_within(within)
        try:
            return decode_from_new(await hearing)
        except BrokenUpgradeMessage as error:
            raise SuccessorGone(f"the new daemon sent an invalid message: {error}") from None
        except HungUp:
            await self._ended(LEAVE_TIME)
            raise SuccessorGone(f"the new daemon {self._how()} before it was ready", self._printed.tail()) from None

    async def count(self, totals: Totals) -> None:
        """Send what this daemon has counted; do nothing if the new one has ended."""
        with contextlib.suppress(HungUp):
            await self._channel.tell(totals)

    async def give(self, counts: list[Totals]) -> None:
        """Hand the service over to the new daemon.

        Raises:
            SuccessorGone: the new daemon has ended.
        """
        try:
            await self._channel.tell(TakeOver(counts))
        except HungUp:
            await self._ended(LEAVE_TIME)
            raise SuccessorGone(f"the new daemon {self._how()} before it had taken over") from None

    async def end(self, *, at_once: bool) -> None:
        """End the new daemon and wait for its death; unless `at_once`, its workers may leave in order."""
        self._channel.close()
        if at_once or not await self._ended(LEAVE_TIME):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            await self._ended(None)
        os.close(self._pidfd)

    async def outlive(self) -> None:
        """Wait for the new daemon's end, after the takeover."""
        with contextlib.suppress(HungUp, BrokenUpgradeMessage):
            while True:
                await self._channel.hear()  # and leave its exit code to the stand-in

    async def _ended(self, timeout: float | None) -> bool:
        """Wait for the end of the process; return whether it came."""
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        loop.add_reader(self._pidfd, over.set)
        try:
            await asyncio.wait_for(over.wait(), timeout)
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(self._pidfd)
        return self._process.poll() is not None

    def _how(self) -> str:
        code = self._process.returncode
        if code is None:
            return "closed its connection to the old one"
        if code >= 0:
            return f"ended with exit code {code}"
        return f"was killed by {signal_name(-code)}"


class Printed:
    """The output to our stderr from now on, if that is a file."""

    def __init__(self) -> None:
        status = os.fstat(2)
        self._start = status.st_size if stat.S_ISREG(status.st_mode) else None

    def tail(self) -> str:
        if self._start is None:
            return ""
        with contextlib.suppress(OSError), open("/proc/self/fd/2", "rb") as file:
            file.seek(self._start)
            return "\n".join(file.read().decode(errors="replace").splitlines()[-_TAIL:])
        return ""


def start(launch: Launch, python: str | None, inheritance: Inheritance) -> NewDaemon:
    """Start the new daemon.

    Raises:
        SuccessorGone: the process cannot be started.
    """
    ours, theirs = socket.socketpair()
    printed = Printed()
    try:
        process = _execute(launch, python or sys.executable, inheritance, theirs.fileno())
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return NewDaemon(process, Channel(ours), inheritance, printed)


def _execute(launch: Launch, python: str, inheritance: Inheritance, channel: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [python, "-P", "-m", "tsctl.daemon", *launch.arguments, f"--inherit={channel}"],
            stdin=subprocess.DEVNULL,
            pass_fds=(
                *inheritance.locks,
                inheritance.control,
                *(each.descriptor for each in inheritance.endpoints),
                channel,
                *([] if launch.parent is None else [launch.parent]),
            ),
            start_new_session=True,
            env=os.environ,  # without it, C's environment: grpc, imported, has a variable of its own there
            cwd=launch.directory if os.path.isdir(launch.directory) else "/",
        )
    except OSError as error:
        raise SuccessorGone(f"cannot start `{python}`: {error.strerror}") from None
