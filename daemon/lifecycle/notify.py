"""Messages to the service manager that started this daemon: sd_notify(3), a datagram for each.

    READY=1                   the daemon listens; a request for a model that still loads waits
    STATUS=…                  a line for `systemctl status`, whenever it changes
    WATCHDOG=1                from the event loop, so a stalled loop is noticed; twice in each `WatchdogSec=`
    STOPPING=1                with EXTEND_TIMEOUT_USEC, because the grace time of a stop is the daemon's setting

The manager names its socket in NOTIFY_SOCKET. Without that nothing runs, and no timer is set. After an upgrade the
process that the manager knows is the stand-in (upgrade/shim.py) or still the old daemon, so the new one speaks in its
place: the unit needs `NotifyAccess=all`. From the handover on the old one is silent.
"""

import logging
import socket
from collections.abc import Callable, Mapping, MutableMapping

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.models.registry import Registry

_STATUS_EVERY = 5.0  # seconds between two looks at the status
_MARGIN = 15.0  # seconds that a stop takes beside its grace times

_log = logging.getLogger("tsctl.daemon.server")


class Notifier:
    """A connection to the service manager; does nothing without an address.

    Args:
        address: a path, or `@NAME` in the abstract namespace; empty without a service manager.
        watchdog: seconds within which the manager wants to hear from the event loop; 0.0 if it does not.
    """

    def __init__(self, address: str = "", watchdog: float = 0.0) -> None:
        self.watchdog = watchdog if address else 0.0
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if address else None
        if self._socket is not None:
            self._socket.setblocking(False)
        self._unsent: dict[str, str] = {}
        self._said = ""
        self._status: Callable[[], str] = str
        self._timer: Timer | None = None

    def __repr__(self) -> str:
        return f"<Notifier {self._address!r} watchdog={self.watchdog:g}>"

    def report_ready(self, clock: Clock, status: Callable[[], str]) -> None:
        """Report that the daemon serves, and from now on its status, and that the loop turns.

        Args:
            status: returns the line of the moment.
        """
        if self._socket is not None:
            self._status = status
            self._tell(READY="1")
            self._turn(clock)

    def stopping(self, grace: float) -> None:
        """Report that the daemon stops, and how long that may take: forms and models have a grace time each."""
        self._tell(
            STOPPING="1",
            STATUS=f"Stopping; running requests have {grace:g} s",
            EXTEND_TIMEOUT_USEC=str(round((2 * grace + _MARGIN) * 1e6)),
        )
        self._status = str

    def close(self) -> None:
        """Stop sending."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _turn(self, clock: Clock) -> None:
        # First, and the watchdog before the status: an exception must not end the daemon by way of its watchdog.
        self._timer = clock.later(every(self.watchdog), lambda: self._turn(clock))
        if self.watchdog:
            self._unsent["WATCHDOG"] = "1"
        try:
            status = self._status()
            if status not in ("", self._said):
                self._unsent["STATUS"] = self._said = status
        finally:
            self._tell()

    def _tell(self, **fields: str) -> None:
        """Send assignments; those that the manager has no room for go with the next ones."""
        self._unsent |= fields
        if self._socket is None or not self._unsent:
            return
        try:
            self._socket.sendto(message(self._unsent), self._address)
            self._unsent.clear()
        except BlockingIOError:
            pass
        except OSError as error:
            _log.warning(
                "cannot tell the service manager at `%s`: %s; is NOTIFY_SOCKET meant for this daemon?",
                self._address.replace("\0", "@"), error.strerror,
            )  # fmt: skip
            self.close()


def notifier_of(environment: MutableMapping[str, str], pid: int) -> Notifier:
    """Return the notifier that the environment asks for.

    A watchdog for another process is removed from the environment. WATCHDOG_PID is removed from one for ours, because
    the daemon that replaces this one feeds the same watchdog (sd_watchdog_enabled(3) asks no pid then).
    """
    meant = environment.pop("WATCHDOG_PID", str(pid)) == str(pid)
    if not meant:
        environment.pop("WATCHDOG_USEC", None)
    return Notifier(environment.get("NOTIFY_SOCKET", ""), watchdog_of(environment))


def watchdog_of(environment: Mapping[str, str]) -> float:
    """Return the watchdog's time in seconds; 0.0 without one."""
    said = environment.get("WATCHDOG_USEC", "")
    return int(said) / 1e6 if said.isdecimal() else 0.0


def every(watchdog: float) -> float:
    """Return the seconds between two messages: two in the watchdog's time, and enough for the status."""
    return min(_STATUS_EVERY, watchdog / 2) if watchdog else _STATUS_EVERY


def message(fields: Mapping[str, str]) -> bytes:
    """Return a datagram: an assignment a line. A line break in a value would be an assignment of its own."""
    return "\n".join(f"{name}={' '.join(value.split())}" for name, value in fields.items()).encode()


def status_of(registry: Registry, where: str) -> str:
    """Return the line of a daemon that serves.

    Args:
        where: the address of predictions.
    """
    pools = [model.pool for model in registry]
    if not pools:
        return f"Serving no model yet, at {where}"
    models = f"{len(pools)} model{'s' if len(pools) > 1 else ''}"
    workers = f"{sum(pool.ready for pool in pools)} of {sum(pool.wanted for pool in pools)} workers"
    without = sum(1 for pool in pools if pool.wanted and not pool.ready)
    return f"Serving {models} with {workers}, at {where}{f'; {without} without a ready worker' if without else ''}"
