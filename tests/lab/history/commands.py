"""The registry as a value, and each command's effect on it: the specification of the daemon."""

from typing import Any, NamedTuple

BROKEN = "broken"  # the archive whose handler cannot load


class Version(NamedTuple):
    """One registered version: which archive, what was asked for, and whether it is its model's default."""

    archive: str
    batch_size: int
    workers: int
    default: bool = False


Key = tuple[str, str]  # model, version
Registered = frozenset[tuple[Key, Version]]  # everything that is registered


def only(name: str, registered: Registered) -> Registered:
    """Leave out all other models."""
    return frozenset(each for each in registered if each[0][0] == name)


def shown(registered: Registered) -> str:
    """Return what is registered, for people."""
    versions = [
        f"{name}/{version}{'*' * what.default} ({what.archive}, batch {what.batch_size}, workers {what.workers})"
        for (name, version), what in sorted(registered)
    ]
    return ", ".join(versions) or "nothing"


class Register(NamedTuple):
    """Register a version, or with `replace` put it in the place of what is there."""

    name: str
    version: str
    what: Version
    replace: bool = False
    synchronous: bool = True

    def applied(self, before: Registered) -> Registered | None:
        there = dict(before).get((self.name, self.version))
        if there is not None and not self.replace and there.archive != BROKEN:  # one that failed makes room
            return None
        default = not only(self.name, before) if there is None else there.default
        return _with(before, {(self.name, self.version): self.what._replace(default=default)})


class Change(NamedTuple):
    """Change a field of a version: `workers` or `batch_size`."""

    name: str
    version: str
    field: str
    value: int

    def applied(self, before: Registered) -> Registered | None:
        key = self.name, self.version
        there = dict(before).get(key)
        changed: dict[str, Any] = {self.field: self.value}
        return None if there is None else _with(before, {key: there._replace(**changed)})


class Unregister(NamedTuple):
    name: str
    version: str

    def applied(self, before: Registered) -> Registered | None:
        key = self.name, self.version
        there = dict(before).get(key)
        if there is None or (there.default and len(only(self.name, before)) > 1):  # the default is the last to go
            return None
        return before - {(key, there)}


class SetDefault(NamedTuple):
    name: str
    version: str

    def applied(self, before: Registered) -> Registered | None:
        if (self.name, self.version) not in dict(before):
            return None
        own = only(self.name, before)
        return _with(before, {key: what._replace(default=key[1] == self.version) for key, what in own})


class Retry(NamedTuple):
    """Try a version again that has failed; whatever comes of it, what is registered stays."""

    name: str
    version: str

    def applied(self, before: Registered) -> Registered | None:
        return before if (self.name, self.version) in dict(before) else None


Command = Register | Change | Unregister | SetDefault | Retry


def _with(before: Registered, versions: dict[Key, Version]) -> Registered:
    return frozenset((dict(before) | versions).items())
