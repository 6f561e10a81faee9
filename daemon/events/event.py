"""One event, and the table of the kinds that the core adds."""

import logging
from typing import Any, Literal, NamedTuple

import msgspec

Level = Literal["info", "warning", "error"]
LEVELS: dict[str, int] = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Event(msgspec.Struct, frozen=True):
    """Something that happened in the daemon.

    Attributes:
        sequence: rises with each event, also over restarts and upgrades of the daemon.
        time: seconds since the epoch.
        kind: a key of `KINDS` (kinds.py).
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


class EventKind(NamedTuple):
    """A kind of events: the level of each, and its meaning."""

    level: Level
    meaning: str


CORE_KINDS: dict[str, EventKind] = {
    "started": EventKind("info", "the daemon listens"),
    "stopping": EventKind("info", "the daemon stops; running requests have their grace time"),
    "upgrade-started": EventKind("info", "another daemon is started, to replace this one"),
    "upgraded": EventKind("info", "another daemon has replaced this one"),
    "upgrade-failed": EventKind("error", "the running daemon stays"),
    "registered": EventKind("info", "a version was registered, restored or loaded from the list of models"),
    "registration-failed": EventKind("error", "a version could not be registered, restored or loaded"),
    "unregistered": EventKind("info", "a version was taken out of service"),
    "owner-gone": EventKind("info", "the process that served a version, and is to take it away, has ended"),
    "replacing": EventKind("info", "another archive is loading, to take the version's place"),
    "replaced": EventKind("info", "another archive has taken the version's place"),
    "replacement-failed": EventKind("error", "the version that was to be replaced goes on serving"),
    "scaled": EventKind("info", "the number of workers was changed"),
    "loading": EventKind("info", "a version that was not in memory is loaded: a request came, or an operator asked"),
    "unloaded": EventKind("info", "a version left memory: it was idle, others needed the room, or an operator asked"),
    "retried": EventKind("info", "workers are started again, with a clean record"),
    "settings-changed": EventKind(
        "info", "settings were changed while serving, or chosen by what the handler declares"
    ),
    "default-changed": EventKind("info", "the version that answers requests without one was changed"),
    "route-changed": EventKind("info", "the versions that share the requests of a model were changed"),
    "model-ready": EventKind("info", "the first worker is ready"),
    "model-failed": EventKind("error", "every worker failed, and none is started again"),
    "model-crashing": EventKind("error", "several workers in a row ended while they ran requests"),
    "model-recovered": EventKind("info", "a worker has answered, or is ready again, after crashes or failures"),
    "model-warning": EventKind("warning", "a setting of the model works against it"),
    "workers-given-up": EventKind("error", "some workers failed and are not started again; others serve"),
    "worker-exited": EventKind("error", "a worker ended that was not told to"),
    "requests-refused": EventKind("warning", "requests were refused before they were run"),
    "requests-failed": EventKind("error", "the handler raised, or answered with a status of 500 or more"),
    "requests-expired": EventKind("warning", "requests had no time left"),
    "limit": EventKind("warning", "a limit of the daemon was reached"),
    "log-lost": EventKind("error", "a log file, or the file of events, cannot be written"),
    "not-remembered": EventKind("error", "a change was applied, and the snapshot could not be written"),
    "part-unused": EventKind(
        "warning", "what an extension had kept in the snapshot is not used: it is not there, or cannot read it"
    ),
    "server-ended": EventKind("error", "a server that must never end has ended, and is started again"),
    "server-restarted": EventKind("info", "a server that had ended serves again"),
    "internal-error": EventKind("error", "an exception that nothing has caught: a bug; its traceback is in the log"),
    "loop-stalled": EventKind("warning", "the event loop did not turn for a while"),
}
