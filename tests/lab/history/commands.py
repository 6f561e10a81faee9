"""The registry as a value, and each command's effect on it: the specification of the daemon."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

BROKEN = "broken"  # the archive whose handler cannot load


class Version(NamedTuple):
    """One registered version: which archive, and what was asked for."""

    archive: str
    batch_size: int
    workers: int


@dataclass(frozen=True, slots=True)
class Registered:
    """Everything that is registered.

    Attributes:
        versions: (model, version) and what it is, in order.
        defaults: model and its default version, in order.
    """

    versions: tuple[tuple[tuple[str, str], Version], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(versions: Mapping[tuple[str, str], Version], defaults: Mapping[str, str]) -> "Registered":
        return Registered(tuple(sorted(versions.items())), tuple(sorted(defaults.items())))

    @property
    def names(self) -> set[str]:
        return {name for (name, _), _ in self.versions}

    def only(self, name: str) -> "Registered":
        """Leave out all other models."""
        return Registered(
            tuple(each for each in self.versions if each[0][0] == name),
            tuple(each for each in self.defaults if each[0] == name),
        )

    def __str__(self) -> str:
        defaults = dict(self.defaults)
        shown = [
            f"{name}/{version}{'*' if defaults.get(name) == version else ''}"
            f" ({what.archive}, batch {what.batch_size}, workers {what.workers})"
            for (name, version), what in self.versions
        ]
        return ", ".join(shown) or "nothing"


class Register(NamedTuple):
    """Register a version, or with `replace` put it in the place of what is there."""

    name: str
    version: str
    what: Version
    replace: bool = False
    synchronous: bool = True

    def applied(self, before: Registered) -> Registered | None:
        versions, defaults = dict(before.versions), dict(before.defaults)
        key = (self.name, self.version)
        there = versions.get(key)
        if there is not None and not self.replace and there.archive != BROKEN:  # one that failed makes room
            return None
        return Registered.of({**versions, key: self.what}, {self.name: self.version} | defaults)


class Scale(NamedTuple):
    name: str
    version: str
    workers: int

    def applied(self, before: Registered) -> Registered | None:
        return _changed(before, self.name, self.version, workers=self.workers)


class Set(NamedTuple):
    name: str
    version: str
    batch_size: int

    def applied(self, before: Registered) -> Registered | None:
        return _changed(before, self.name, self.version, batch_size=self.batch_size)


class Unregister(NamedTuple):
    name: str
    version: str

    def applied(self, before: Registered) -> Registered | None:
        versions, defaults = dict(before.versions), dict(before.defaults)
        if versions.pop((self.name, self.version), None) is None:
            return None
        if defaults[self.name] == self.version:
            if any(name == self.name for name, _ in versions):
                return None  # the default is the last to go
            del defaults[self.name]
        return Registered.of(versions, defaults)


class SetDefault(NamedTuple):
    name: str
    version: str

    def applied(self, before: Registered) -> Registered | None:
        if (self.name, self.version) not in dict(before.versions):
            return None
        return Registered.of(dict(before.versions), {**dict(before.defaults), self.name: self.version})


class Retry(NamedTuple):
    """Try a version again that has failed; whatever comes of it, what is registered stays."""

    name: str
    version: str

    def applied(self, before: Registered) -> Registered | None:
        return before if (self.name, self.version) in dict(before.versions) else None


Command = Register | Scale | Set | Unregister | SetDefault | Retry


def _changed(before: Registered, name: str, version: str, **values: int) -> Registered | None:
    versions = dict(before.versions)
    if (name, version) not in versions:
        return None
    what = versions[name, version]
    return Registered.of(
        {**versions, (name, version): what._replace(**values)},  # type: ignore[arg-type]  # all of them are numbers
        dict(before.defaults),
    )
