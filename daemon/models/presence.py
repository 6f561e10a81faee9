"""Whether a version has workers, and how many: the operator's range, what load asks for, and whether they are ended.

An extension may put another presence in the place of this one before the version has workers (`Service.follow`): one
that also ends workers by itself, and lets requests bring them back.

A command waits here until the workers are ready, or another condition on a version holds; each change checks it.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from tsctl.daemon.core.errors import DaemonError, OutOfResources, Stopping, WorkersFailed
from tsctl.daemon.models.archives.opening import Progress
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.request import Source
from tsctl.daemon.workers.engine import LoadFailure
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
            self.resume(scaled_text(least, most), kind)
        else:
            self.end(scaled_text(least, most))

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


def scaled_text(least: int, most: int) -> str:
    """Return what an operator has asked for: a number of workers, or a range of them."""
    number = f"{least}-{most}" if most > least else str(least)
    return f"scaled to {number} worker{'' if number == '1' else 's'}"


class AwaitedVersion(Protocol):
    """A version, as far as a command waits for it."""

    name: str
    version: str
    source: Source
    pool: Pool
    stopping: bool
    listeners: dict[Callable[[], None], None]


_IMPORT = ("ModuleNotFoundError", "ImportError")


async def all_ready(model: AwaitedVersion, wanted: int, progress: Progress) -> None:
    """Wait until a model has `wanted` ready workers, or fewer after a scale down meanwhile; report the progress.

    Raises:
        Stopping: the model was stopped meanwhile.
        WorkersFailed: a worker could not load the model; the message ends with the traceback.
        OutOfResources: a worker ran out of memory; the message ends with the traceback.
    """
    failure: LoadFailure | None = None

    def settled() -> bool:
        nonlocal failure
        progress("loading", model.pool.ready, model.pool.wanted)
        failure = failure or model.pool.failure  # kept: the pool may forget the failure when another worker is ready
        return model.stopping or failure is not None or model.pool.ready >= min(wanted, model.pool.wanted)

    await until(model, settled, None)
    if model.stopping:
        raise Stopping(f'Model "{model.name}" version {model.version} was stopped while it was loading.')
    if failure is None:
        return
    reason = failure.error + _requirements_remedy(model, failure)
    sentence = f"Failed to start workers for model {model.name} version: {model.version}: {reason}"
    last = model.pool.last_exit
    details = failure.traceback or ("\n".join(last.output) if last is not None else "")
    if details.strip() == failure.error:  # a sentence of ours, without frames
        details = ""
    kind = OutOfResources if failure.out_of_memory else WorkersFailed
    raise kind(f"{sentence}\n\n{details}" if details else sentence)


def _requirements_remedy(model: AwaitedVersion, failure: LoadFailure) -> str:
    """Return the end of the sentence on an import that fails where the archive's requirements are not installed."""
    file = model.source.manifest.requirements_file
    if file is None or model.source.python is not None or not failure.error.startswith(_IMPORT):
        return ""
    return (
        f". The archive's `{file}` is not installed: `--install-requirements` of `tsctl start`, and of `tsctl check`,"
        " does that; or install what it lists beside tsctl"
    )


async def until(model: AwaitedVersion, condition: Callable[[], bool], timeout: float | None) -> None:
    """Wait until a condition on a model holds, or for `timeout` seconds; check after each change."""
    done = asyncio.get_running_loop().create_future()

    def look() -> None:
        if not done.done() and condition():
            done.set_result(None)

    model.listeners[look] = None
    try:
        look()
        await asyncio.wait_for(done, timeout)
    except TimeoutError:
        pass
    finally:
        model.listeners.pop(look, None)
