"""How many workers a version has: the operator's range, what load asks for, and whether it is in memory, combined."""

from collections.abc import Callable

from tsctl.daemon.models.residency.residence import Residence
from tsctl.daemon.models.residency.state import ResidenceEvent
from tsctl.daemon.workers.pool import Pool


class Staffing:
    """Sets the size of one version's pool.

    Args:
        resized: called after each change of the range, or of the number.

    Attributes:
        least, most: the operator's range; 0 and 0 before one is known.
    """

    def __init__(self, residence: Residence, pool: Pool, resized: Callable[[], None]) -> None:
        self.least = self.most = 0
        self._residence = residence
        self._pool = pool
        self._resized = resized

    def __repr__(self) -> str:
        return f"<Staffing {self._pool.wanted} of {self.least} to {self.most}, {self._residence!r}>"

    def start(self, least: int, most: int, *, held: bool, load: bool = False) -> None:
        """Begin with a range.

        Args:
            held: an operator unloaded the version in an earlier run.
            load: start the workers also of a version that is loaded on demand.
        """
        on_demand = self._residence.on_demand
        if held or (on_demand and not least):
            self.least, self.most = least, most
            self.hold("unloaded by an operator" if held else "registered without workers")
        elif on_demand and not load:
            self.least, self.most = least, most
            self._resized()
        elif least:
            self.scale(least, most, "startup")

    def scale(self, least: int, most: int, kind: str = "operator") -> None:
        """Scale to at least `least` and at most `most` workers; a version that is not in memory is loaded."""
        self.least, self.most = least, most
        if most:
            self.load(f"scaled to {least} workers", kind)
        else:
            self.hold("scaled to 0 workers")

    def load(self, why: str, kind: str = "operator") -> None:
        """Start the workers of a version that is not in memory, or of one that has failed.

        Args:
            why: for people.
            kind: of the reason, for counters.
        """
        if self._residence.may(ResidenceEvent.LOAD):
            self._residence.move(ResidenceEvent.LOAD, why, kind)
        self.choose(self._pool.wanted)

    def unload(self, why: str, kind: str) -> None:
        """End the workers of a loaded version; the next request loads it. Arguments as for `load`."""
        self._residence.move(ResidenceEvent.UNLOAD, why, kind)
        self.choose(0)

    def hold(self, why: str) -> None:
        """End the workers, and start none before an operator asks for them."""
        self._residence.move(ResidenceEvent.HOLD, why)
        self.choose(0)

    def choose(self, number: int) -> None:
        """Set the number of workers, within what the operator wishes, and none if the version is not in memory."""
        residence = self._residence
        self._pool.scale(
            wanted_workers(self.least, self.most, number, resident=residence.resident, on_demand=residence.on_demand)
        )
        self._resized()


def wanted_workers(least: int, most: int, chosen: int, *, resident: bool, on_demand: bool) -> int:
    """Return the number of workers that a version shall have now.

    Args:
        least, most: the operator's range; `most` is 0 for none.
        chosen: the number in force, or chosen by load; counts within the range.
        resident: whether the version is loaded, or is to be (state.py).
        on_demand: whether it is unloaded when idle: then it has a worker while it is loaded, whatever `least` is.
    """
    if not resident or not most:
        return 0
    return min(max(chosen, least, int(on_demand)), most)
