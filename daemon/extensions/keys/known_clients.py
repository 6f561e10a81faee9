"""The clients that are known by keys: `--keys-file`, a TOML file that the daemon reads again when it changes.

    [[client]]
    name = "mobile"
    sha256 = "5e88…"                # of the key, 64 hexadecimal digits: the file holds no key
    models = ["resnet", "bert-*"]   # all by default; [] for none
    rate = 20                       # predictions a second; no limit by default
    burst = 40                      # predictions at once; by default as many as in a second
    priority = "low"                # of all its requests; normal by default
    bytes = "1MiB"                  # of a body; the daemon's --max-request-size by default

Several tables with one name are one client with several keys; all say the same of its rights.
A key has 256 random bits, so that its plain SHA-256 cannot be searched for, and needs no salt.
"""

import hashlib
import math
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from tsctl.daemon.config.private_file import read_private
from tsctl.daemon.core.client import BodyTooLong, ModelNotAllowed, TooManyRequests
from tsctl.daemon.core.clock import Clock, Ticker
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.extension import Service
from tsctl.daemon.extensions.keys import CLIENT_NAME, LEAST_RATE, MOST_RATE
from tsctl.daemon.setting_values import parse_size


@dataclass(slots=True)
class KnownClient:
    """A known client: the models that it may use, and its rate of requests.

    The rate is limited by the virtual scheduling algorithm (ITU-T I.371, annex A), a token bucket in one number: `due`
    is when the next request would come from a client that sends evenly at its rate. A request may come earlier than
    that by the time that the rest of a burst takes.

    Attributes:
        models: patterns of the names of models that the client may use, as in file names; None for all.
        rate: predictions a second; 0.0 for no limit.
        burst: predictions that may come at once, at least 1; without effect if there is no rate.
        low_priority: all its requests have low priority, whatever they ask for.
        bytes: the most bytes of a body; 0 for the daemon's own limit.
        due: when the next request is due at an even rate, seconds on the daemon's clock.
    """

    name: str
    models: tuple[str, ...] | None = None
    rate: float = 0.0
    burst: int = 1
    low_priority: bool = False
    bytes: int = 0
    due: float = field(default=0.0, compare=False)

    def may_use(self, model: str) -> bool:
        """Return whether the client's key allows a model."""
        return self.models is None or any(fnmatchcase(model, pattern) for pattern in self.models)

    def wait(self, now: float) -> float:
        """Return the seconds until the client may send a request; 0.0 for now."""
        if not self.rate:
            return 0.0
        return max(0.0, self.due - (self.burst - 1) / self.rate - now)

    def check_model(self, model: str) -> None:
        """Raise ModelNotAllowed if the client's key does not allow a model."""
        if not self.may_use(model):
            raise ModelNotAllowed(self.name, model)

    def check_size(self, size: int) -> None:
        """Raise BodyTooLong if the client may not send so many bytes."""
        if self.bytes and size > self.bytes:
            raise BodyTooLong(self.name, self.bytes, size)

    def check_rate(self, now: float) -> None:
        """Raise TooManyRequests if a request would come too early; count nothing."""
        wait = self.wait(now)
        if wait > 0.0:
            raise TooManyRequests(self.name, self.rate, self.burst, wait)

    def admit(self, model: str, size: int, now: float) -> None:
        """Count a request of the client.

        Raises:
            ModelNotAllowed: the client's key does not allow the model.
            BodyTooLong: the client may not send so many bytes.
            TooManyRequests: the request comes too early; it does not count.
        """
        self.check_model(model)
        self.check_size(size)
        self.check_rate(now)
        if self.rate:
            self.due = max(self.due, now) + 1 / self.rate


LOOK_EVERY = 1.0  # seconds between two looks at the file
HINT = "`tsctl key NAME --keys-file FILE` adds a client"


class ClientTable(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A client in the file; see the module."""

    name: Annotated[str, msgspec.Meta(pattern=f"^{CLIENT_NAME}$")]
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-fA-F]{64}$")]
    models: list[Annotated[str, msgspec.Meta(min_length=1)]] | None = None
    rate: Annotated[float, msgspec.Meta(ge=LEAST_RATE, le=MOST_RATE)] | None = None
    burst: Annotated[int, msgspec.Meta(ge=1)] | None = None
    priority: Literal["normal", "low"] = "normal"
    bytes: int | str | None = None


class KeysFile(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    client: list[ClientTable] = []


def digest_of(key: str) -> str:
    """Return the SHA-256 of a key, as the file has it."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


class KnownClients(Service):
    """The clients of a keys file, by the digests of their keys. The file is looked at without a request, too.

    Args:
        changed: called with a kind of event and a sentence when a changed file was read, or could not be: then the
            clients of before stay.

    Raises:
        StartError: the file cannot be used.
    """

    def __init__(
        self, file: Path, clock: Clock, changed: Callable[[str, str], object] = lambda kind, text: None
    ) -> None:
        self._file = file
        self._changed = changed
        self._seen = _stamp(file)
        self._clients = read_clients(file)
        self._ticker = Ticker(clock, LOOK_EVERY, self._read_changed)

    def __repr__(self) -> str:
        return f"<KnownClients {self._file}: {len(self._clients)}>"

    @property
    def names(self) -> list[str]:
        """The names of the clients, sorted; a client may have several keys."""
        return sorted({client.name for client in self._clients.values()})

    def find(self, key: str) -> KnownClient | None:
        """Return the client with this key; None if there is none."""
        return self._clients.get(digest_of(key))

    def begin(self) -> None:
        self._ticker.begin()

    def close(self) -> None:
        self._ticker.close()

    def _read_changed(self) -> None:
        stamp = _stamp(self._file)
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            read = read_clients(self._file)
        except StartError as error:
            self._changed("keys-invalid", f"{error}; the clients of before stay")
            return
        before = {client.name: client.due for client in self._clients.values()}
        for client in read.values():
            client.due = before.get(client.name, 0.0)
        self._clients = read
        count = len(self.names)
        self._changed("keys-read", f"`{self._file}` has changed: {count} client{'s' if count != 1 else ''}")


def read_clients(file: Path) -> dict[str, KnownClient]:
    """Return the clients of a file, by the digests of their keys. Keys with the same name share a client.

    Raises:
        StartError: the file cannot be read, others can write to it, or its content is invalid.
    """
    text = read_private(file, "keys", readable=True, hint=HINT)
    try:
        return _by_digest(msgspec.convert(tomllib.loads(text.decode()), KeysFile).client)
    except (ValueError, RecursionError) as error:  # of UTF-8, of TOML, and of its tables; of many brackets
        raise StartError(f"the keys file `{file}` is invalid: {error}", HINT) from None


def _by_digest(entries: Iterable[ClientTable]) -> dict[str, KnownClient]:
    clients: dict[str, KnownClient] = {}
    named: dict[str, KnownClient] = {}
    for entry in entries:
        client = _client_of(entry)
        if named.setdefault(client.name, client) != client:
            raise ValueError(f"client `{entry.name}` is there twice, with different rights")
        digest = entry.sha256.lower()
        if digest in clients:
            raise ValueError(f"the key of client `{entry.name}` is there twice")
        clients[digest] = named[client.name]
    return clients


def _client_of(entry: ClientTable) -> KnownClient:
    rate = entry.rate or 0.0
    size = 0 if entry.bytes is None else parse_size(str(entry.bytes))
    if entry.bytes is not None and not size:
        raise ValueError(f"`bytes` of client `{entry.name}` is 0; leave it out for the daemon's own limit")
    models = None if entry.models is None else tuple(entry.models)
    burst = entry.burst or max(1, math.ceil(rate))
    return KnownClient(entry.name, models, rate, burst, entry.priority == "low", size)


def _stamp(file: Path) -> tuple[int, ...] | None:
    """Return the inode, time, size, owner and mode of the file, which tell a change; None if there is no file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size, status.st_uid, status.st_mode
