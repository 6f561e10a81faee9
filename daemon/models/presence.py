"""Whether a version has workers, and how many: the operator's range, what load asks for, and whether they are ended.

An extension may put another presence in the place of this one before the version has workers (`Service.attach`): one
that also ends workers by itself, and lets requests bring them back.
"""

from collections.abc import Callable

from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.workers.pool import Pool


class Presence:
    """Sets the size of one version's pool.

    Attributes:
        resized: called after each change of the range, or of the number.
        least, most: the operator's range; 0 and 0 before one is known.
        ended: whether an operator has ended the workers: nobody else starts them.
    """

    def __init__(self, pool: Pool, resized: Callable[[], None]) -> None:
        self.least = self.most = 0
        self.ended = False
        self._pool = pool
        self.resized = resized

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._pool.wanted} of {self.least} to {self.most} workers>"

    @property
    def present(self) -> bool:
        """Whether the version has workers, or is to have them."""
        return self.most > 0 and not self.ended

    @property
    def comes(self) -> bool:
        """Whether a request that finds no worker serving waits, because it brings the workers (`ask`)."""
        return False

    @property
    def absence(self) -> str:
        """The state that is shown while no worker is wanted."""
        return ModelState.UNLOADED.value

    def ask(self) -> None:
        """Note that a request waits while no worker serves."""

    def set_retry_after(self, error: DaemonError) -> None:
        """Set when a request that is rejected while no worker serves may come again, if that is known."""

    def start(self, least: int, most: int, *, held: bool, load: bool = False) -> None:
        """Begin with a range.

        Args:
            held: an operator ended the workers in an earlier run.
            load: start the workers also where requests would.
        """
        del load
        if held:
            self.least, self.most = least, most
            self.end("unloaded by an operator")
        elif least:
            self.scale(least, most, "startup")

    def scale(self, least: int, most: int, kind: str = "operator") -> None:
        """Scale to at least `least` and at most `most` workers; those of a version without any are started."""
        self.least, self.most = least, most
        if most:
            self.resume(f"scaled to {least} workers", kind)
        else:
            self.end("scaled to 0 workers")

    def resume(self, why: str, kind: str = "operator") -> None:
        """Start the workers of a version that has none, or of one that has failed.

        Args:
            why: for people.
            kind: of the reason, for counters.
        """
        del why, kind
        self.ended = False
        self.choose(self._pool.wanted)

    def end(self, why: str) -> None:
        """End the workers, and start none before an operator asks for them; `why` for people."""
        del why
        self.ended = True
        self.choose(0)

    def choose(self, number: int) -> None:
        """Set the number of workers, within the operator's range, and none where the version is not present."""
        self._pool.scale(min(max(number, self.least), self.most) if self.present else 0)
        self.resized()

    def retried(self) -> None:
        """Note that an operator tries the version again."""

    def lost(self, reason: str) -> None:
        """Note that the version's files are gone."""

    def pool_changed(self) -> None:
        """Note a change of the workers' states."""

    def left(self) -> None:
        """Note that the version has been retired."""
