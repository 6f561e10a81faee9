"""The daemon's events: one, their kinds, and how each is told in the log, kept in a ring and a file, and forwarded.

In the file they are JSON, a line each, appended by one daemon, and during an upgrade by two:

    lock ──▶ read the lines of the other daemon ──▶ number the own event ──▶ append ──▶ unlock

So the numbers rise over both. A full file is renamed, and a new one begun; the other daemon notices by its inode. A
line that was torn, by a crash or a full disk, is skipped. Nothing is fsynced: a killed daemon loses no event, a
machine that stops may lose the last ones.
"""

import contextlib
import fcntl
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from tsctl.daemon.core.logs import without_secrets
from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.declarations import EventRow
from tsctl.daemon.server.extensions import EXTENSIONS

Level = Literal["info", "warning", "error"]
LEVELS: dict[str, int] = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Event(msgspec.Struct, frozen=True):
    """Something that happened in the daemon.

    Attributes:
        sequence: rises with each event, also over restarts and upgrades of the daemon.
        time: seconds since the epoch.
        kind: a key of `KINDS`.
        model, version: the version of a model that the event is about; empty for the daemon.
        worker: the process id of a worker; 0 for none.
        requests: ids of requests, as their clients see them.
        text: one line, for people.
    """

    sequence: int
    time: float
    level: Level
    kind: str
    model: str
    version: str
    worker: int
    requests: tuple[str, ...]
    text: str

    def concerns(self, model: str, version: str = "") -> bool:
        """Return whether the event is about this model, and this version unless that is empty."""
        return self.model == model and (not version or self.version == version)

    @property
    def line(self) -> str:
        """The event as a line of a log, without its time and level; it names each request once."""
        about = "/".join(filter(None, (self.model, self.version)))
        requests = [each for each in self.requests if each not in self.text]
        named = f" (request{'s' if len(requests) > 1 else ''} {', '.join(requests)})" if requests else ""
        return f"{about}{': ' if about else ''}{self.text}{named}"

    @property
    def fields(self) -> dict[str, Any]:
        """The event's own fields, as a line of the daemon's log has them in JSON; without the empty ones."""
        found = {"kind": self.kind, "model": self.model, "version": self.version, "pid": self.worker}
        return {name: value for name, value in (found | {"requests": self.requests}).items() if value}


_OF_CORE = (
    EventRow("started", "info", "the daemon listens"),
    EventRow("daemon-lost", "error", "the daemon before was killed, or ended with its machine: it told of no stop"),
    EventRow("stopping", "info", "the daemon stops; running requests have their grace time"),
    EventRow("upgrade-started", "info", "another daemon is started, to replace this one"),
    EventRow("upgraded", "info", "another daemon has replaced this one"),
    EventRow("upgrade-failed", "error", "the running daemon stays"),
    EventRow("registered", "info", "a version was registered, restored or loaded from the list of models"),
    EventRow("registration-failed", "error", "a version could not be registered, restored or loaded"),
    EventRow("unregistered", "info", "a version was taken out of service"),
    EventRow("owner-gone", "info", "the process that served a version, and is to take it away, has ended"),
    EventRow("replacing", "info", "another archive is loading, to take the version's place"),
    EventRow("replaced", "info", "another archive has taken the version's place"),
    EventRow("replacement-failed", "error", "the version that was to be replaced goes on serving"),
    EventRow("scaled", "info", "the number of workers was changed"),
    EventRow("scaling-failed", "error", "the first workers failed, or memory has no room for others"),
    EventRow("loading", "info", "a version that was not in memory is loaded: a request came, or an operator asked"),
    EventRow("unloaded", "info", "a version left memory: it was idle, others needed the room, or an operator asked"),
    EventRow("retried", "info", "workers are started again, with a clean record"),
    EventRow("settings-changed", "info", "settings were changed while serving, or chosen by what the handler declares"),
    EventRow("default-changed", "info", "the version that answers requests without one was changed"),
    EventRow("route-changed", "info", "the versions that share the requests of a model were changed"),
    EventRow("model-ready", "info", "the first worker is ready"),
    EventRow("model-failed", "error", "every worker failed, and none is started again"),
    EventRow("model-crashing", "error", "several workers in a row ended while they ran requests"),
    EventRow("model-recovered", "info", "a worker has answered, or is ready again, after crashes or failures"),
    EventRow("model-warning", "warning", "a setting of the model works against it"),
    EventRow("workers-given-up", "error", "some workers failed and are not started again; others serve"),
    EventRow("worker-exited", "error", "a worker ended that was not told to"),
    EventRow("requests-refused", "warning", "requests were refused before they were run"),
    EventRow("requests-failed", "error", "the handler raised, or answered with a status of 500 or more"),
    EventRow("requests-expired", "warning", "requests had no time left"),
    EventRow("limit", "warning", "a limit of the daemon was reached"),
    EventRow("log-lost", "error", "a log file, or the file of events, cannot be written"),
    EventRow("not-remembered", "error", "a change was applied, and the snapshot could not be written"),
    EventRow("snapshot-broken", "error", "the snapshot cannot be read: no model of the last run is restored"),
    EventRow(
        "part-unused",
        "warning",
        "what an extension had kept in the snapshot is not used: it is not there, or cannot read it",
    ),
    EventRow("server-ended", "error", "a server that must never end has ended, and is started again"),
    EventRow("server-restarted", "info", "a server that had ended serves again"),
    EventRow("internal-error", "error", "an exception that nothing has caught: a bug; its traceback is in the log"),
    EventRow("loop-stalled", "warning", "the event loop did not turn for a while"),
)


MOST_BYTES = 4 * 1024 * 1024  # of one file; two are kept
_ATTEMPTS = 20  # to lock, a millisecond apart: the other daemon holds the lock for some 20 µs at a time
_MODE = 0o600  # whatever the umask: an event may hold a client's data

_DECODER = msgspec.json.Decoder(Event)


class Journal:
    """The file of events of one state directory. Where it cannot be written, that is tried again each time.

    Args:
        most_bytes: at which the file is renamed to `FILE.1`, in place of the one before.

    Attributes:
        error: why the last write failed, with the file's name; empty if it did not.
    """

    def __init__(self, file: Path, most_bytes: int = MOST_BYTES) -> None:
        self.error = ""
        self._file = file
        self._older = file.with_name(f"{file.name}.1")
        self._lock_file = file.with_name(f"{file.name}.lock")
        self._most_bytes = most_bytes
        self._descriptor: int | None = None
        self._lock: int | None = None
        self._read = 0  # bytes of the open file that were read, or written by this object

    def __repr__(self) -> str:
        return f"<Journal {self._file} read to byte {self._read}>"

    def read_last(self, most: int) -> list[Event]:
        """Return the last events of both files, the oldest first; to be called once, before anything else."""
        lines: list[bytes] = []
        with contextlib.suppress(OSError):
            self._open()
            lines = self._rest()
        if len(lines) < most:
            with contextlib.suppress(OSError):
                lines = self._older.read_bytes().splitlines() + lines
        return decoded(lines[max(0, len(lines) - most) :])  # not all 40 000: 2 ms instead of 70

    def news(self) -> list[Event]:
        """Return the events that another daemon has added since the last call."""
        lines: list[bytes] = []
        with contextlib.suppress(OSError):
            if self._descriptor is not None:
                lines = self._rest()
            if not self._is_current():
                self._open()
                lines += self._rest()
        return decoded(lines)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep the other daemon from writing. A lock that cannot be had is not waited for: two numbers may be equal."""
        locked = False
        try:
            locked = self._take_lock()
            yield
        finally:
            if locked and self._lock is not None:
                fcntl.flock(self._lock, fcntl.LOCK_UN)

    def write(self, events: Sequence[Event]) -> bool:
        """Append events, after the news were read; return whether they are in the file: all of them, or none."""
        data = b"".join([json_bytes(event) + b"\n" for event in events])
        try:
            if not self._is_current():
                self._open()
            if self._read and self._read + len(data) > self._most_bytes:
                os.replace(self._file, self._older)
                self._open()
            assert self._descriptor is not None
            written = 0
            try:
                while written < len(data):  # the write after one that had room for a part fails, and tells why
                    written += os.write(self._descriptor, data[written:])
            except OSError:
                os.ftruncate(self._descriptor, self._read)
                raise
            self._read += len(data)
            self.error = ""
            return True
        except OSError as error:
            self.error = f"cannot write `{self._file}`: {error.strerror}"
            return False

    def close(self) -> None:
        """Close the files; they are opened again if needed."""
        for descriptor in (self._descriptor, self._lock):
            if descriptor is not None:
                os.close(descriptor)
        self._descriptor = self._lock = None

    def _take_lock(self) -> bool:
        try:
            if self._lock is None:
                self._lock = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
            for _ in range(_ATTEMPTS):
                try:
                    fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(0.001)
                else:
                    return True
        except OSError:
            pass
        return False

    def _is_current(self) -> bool:
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.stat(self._file), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def _open(self) -> None:
        opened = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _MODE)
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._read = opened, 0

    def _rest(self) -> list[bytes]:
        """Return the lines behind those that were read; one that is not complete yet is left for the next time."""
        assert self._descriptor is not None
        length = os.fstat(self._descriptor).st_size - self._read
        if length <= 0:
            self._read += min(0, length)  # a part of a line was taken back
            return []
        data = os.pread(self._descriptor, length, self._read)
        data = data[: data.rfind(b"\n") + 1]
        self._read += len(data)
        return data.splitlines()


def decoded(lines: Sequence[bytes]) -> list[Event]:
    """Return the events of these lines, without those that cannot be read."""
    events = []
    for line in lines:
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            events.append(_DECODER.decode(line))
    return events


KINDS: dict[str, EventRow] = {
    row.name: row for row in (*_OF_CORE, *(row for extension in EXTENSIONS for row in extension.events))
}


def is_lost(events: Iterable[Event]) -> bool:
    """Return whether the daemon that has told these events, and no longer runs, ended without stopping.

    Of one that ran for long they do not reach back to its start; of its stop they tell last.
    """
    kinds = [event.kind for event in events]
    lives = [kind for kind in kinds if kind in ("started", "upgraded", "stopping", "daemon-lost")]
    return lives[-1] in ("started", "upgraded") if lives else len(kinds) >= KEPT


KEPT = 2000  # events in memory: 1 MB at 500 bytes each
MOST_TEXT = 1000  # characters
MOST_REQUESTS = 100  # ids in one event

_log = logging.getLogger("tsctl.daemon.events")

Reader = Callable[[Event], None]


class Events:
    """The latest events of the daemon. Not thread-safe: events are added on the event loop.

    Args:
        journal: the file that keeps the events for the next daemon; None to keep them in memory only.
        wall: returns seconds since the epoch.
        kept: events in memory.

    Attributes:
        last: the sequence of the latest event; 0 before the first.
        counts: how many of each kind were added here, by another daemon's not.
        readers: called with each event after it was added: streams, which come and go with requests. None may raise.
    """

    def __init__(self, journal: Journal | None = None, wall: Callable[[], float] = time.time, kept: int = KEPT) -> None:
        self.last = 0
        self.counts: Counter[str] = Counter()
        self.readers: dict[Reader, None] = {}
        self._ring: deque[Event] = deque(maxlen=kept)
        self._unsaved: deque[Event] = deque(maxlen=kept)  # could not be written yet
        self._journal = journal
        self._wall = wall
        if journal is not None:
            self._take(journal.read_last(kept))

    def __repr__(self) -> str:
        return f"<Events {len(self._ring)}, the last is {self.last}>"

    def add(
        self, kind: str, text: str, *, model: str = "", version: str = "", worker: int = 0, requests: Sequence[str] = ()
    ) -> None:
        """Add an event: log it, keep it, and tell the readers.

        Args:
            kind: a key of `KINDS`, which names its level.
            text: the first line counts; secrets in its URLs are removed.
            model, version, worker, requests: as in `Event`.
        """
        level, line = KINDS[kind].level, without_secrets(_encodable(text).strip().partition("\n")[0])[:MOST_TEXT]
        model, version = _encodable(model), _encodable(version)
        ids, journal = tuple(requests[:MOST_REQUESTS]), self._journal
        failed = journal is not None and bool(journal.error)
        self.counts[kind] += 1
        with nullcontext() if journal is None else journal.lock():
            self.refresh()
            event = Event(self.last + 1, self._wall(), level, kind, model, version, worker, ids, line)
            if journal is not None:
                self._unsaved.append(event)
                if journal.write(self._unsaved):
                    self._unsaved.clear()
        _log.log(LEVELS[level], "%s", event.line, extra={"fields": event.fields})
        self._take([event])
        if journal is not None and journal.error and not failed:
            self.add("log-lost", f"{journal.error}; events are kept in memory until it can be written")

    def after(
        self, sequence: int = 0, model: str = "", version: str = "", *, since: float = 0.0, level: str = "info"
    ) -> list[Event]:
        """Return the kept events behind a sequence, the oldest first.

        Args:
            model, version: only those of this model, and of this version unless that is empty; all if both are empty.
            since: only those from this time on, in seconds since the epoch.
            level: only those of this level or a higher one.
        """
        self.refresh()
        least = LEVELS[level]
        return [
            event
            for event in self._ring
            if event.sequence > sequence
            and event.time >= since
            and LEVELS[event.level] >= least
            and (not model or event.concerns(model, version))
        ]

    def refresh(self) -> None:
        """Take what another daemon has added to the file during an upgrade."""
        if self._journal is not None:
            self._take(self._journal.news())

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.sequence <= self.last:  # numbered by a daemon that could not read the file
                event = replace(event, sequence=self.last + 1)
            self.last = event.sequence
            self._ring.append(event)
            for reader in tuple(self.readers):
                try:
                    reader(event)
                except Exception:  # noqa: BLE001 - else the code that reports a fact would break off, and other readers wait
                    _log.exception("a reader of events has raised")


def _encodable(text: str) -> str:
    """Return a text with half characters escaped (a file name that is no UTF-8 has some): they cannot be written.

    Such an event would be tried again with each further one, and none would ever be written again.
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
