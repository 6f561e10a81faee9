"""The parts of the snapshot that services of extensions keep, by the extensions' names."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class Keeping(Protocol):
    """A service, as in daemon/extension.py."""

    measures: bool

    def keep(self, *, last: bool) -> Mapping[str, Any] | None: ...

    def restore(self, kept: Any) -> None: ...


class KeptParts:
    """The parts of the services of one daemon.

    Args:
        report: called with a sentence when a part cannot be used.

    Attributes:
        services: those of extensions, in the order of their list.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self.services: Mapping[str, Keeping] = {}
        self._report = report
        self._foreign: dict[str, Any] = {}

    def restore(self, parts: Mapping[str, Any], copy_aside: Callable[[], str]) -> None:
        """Let the services take up their parts of the last snapshot, before any version is registered.

        A part whose extension this daemon does not have stays in the snapshot. One that its service cannot read is
        reported, and in a copy of the file.

        Args:
            copy_aside: copies the file, and returns where the copy is, or why there is none.
        """
        self._foreign = {name: part for name, part in parts.items() if name not in self.services}
        for name in self._foreign:
            self._report(f"the daemon has no extension `{name}`: its part of the snapshot is kept there, and not used")
        unusable = {}
        for name, service in self.services.items():
            if name in parts:
                try:
                    service.restore(parts[name])
                except Exception as error:  # noqa: BLE001 - a file is no reason not to serve
                    unusable[name] = error
        if unusable:
            where = copy_aside()
            for name, why in unusable.items():
                self._report(f"the extension `{name}` cannot use its part of the snapshot: {why}; {where}")

    @property
    def measurements(self) -> frozenset[str]:
        """The names of the parts that are measurements."""
        return frozenset(name for name, service in self.services.items() if service.measures)

    def measured(self) -> dict[str, Any]:
        """Return these parts; those that have nothing to keep are missing."""
        own = {name: self.services[name].keep(last=True) for name in self.measurements}
        return {name: part for name, part in own.items() if part is not None}

    def kept(self, *, last: bool) -> dict[str, Any]:
        """Return the parts for the next snapshot; `last` as in `Service.keep`."""
        own = {name: service.keep(last=last) for name, service in self.services.items()}
        return self._foreign | {name: part for name, part in own.items() if part is not None}
