"""The trials of all versions of a registry: one at a time, each in a process of the lowest priority.

A look each second costs little: most versions have no trial, or one that has ended. A set that is chosen takes over as
a replacement of the version by itself: new workers load beside those that serve, and no request fails.
"""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

import msgspec

from tsctl.daemon.config.config import Config
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.core.clock import Clock, Ticker
from tsctl.daemon.core.errors import Conflict, DaemonError, ModelNotFound, Stopping, Upgrading, VersionNotFound
from tsctl.daemon.core.machine.memory import taken
from tsctl.daemon.core.machine.memory_left import available
from tsctl.daemon.models.optimizing.auto import AutoOptimization
from tsctl.daemon.models.optimizing.choice import choose
from tsctl.daemon.models.optimizing.due import ATTEMPTS, PAUSES, Moment, is_worth_it, short_of_memory, waits_for
from tsctl.daemon.models.optimizing.program import LONGEST, RunTrial, TrialFailed, run_trial
from tsctl.daemon.models.optimizing.record import AutoRecord
from tsctl.daemon.models.optimizing.sample import sample_for
from tsctl.daemon.models.optimizing.state import TrialEvent, TrialState
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import local_pid
from tsctl.daemon.workers.pool import Pool

LOOK_EVERY = 1.0  # seconds
AGAIN = 30.0  # seconds until memory, or a sample, is looked for again
SECONDS = 2.0  # seconds that each set is measured
_NOT_WRITTEN = "its record, which cannot be written: see the disk of the state directory"
_NO_SAMPLE = "a request to repeat: name a file of the archive as `warmup`, or set `recordInput`"


def memory_of(pool: Pool) -> tuple[int, int]:
    """Return the bytes of the largest worker, and those that are left. Blocks for milliseconds."""
    pids = [pid for pid in map(local_pid, pool.workers) if pid]
    return max(map(taken, pids)), min(left for left, _ in available())


class AutoOptimizing:
    """Tries the versions that are to be tried, and serves with the chosen sets.

    Args:
        run: runs a trial.
        memory: as `memory_of`.
    """

    def __init__(
        self,
        registry: Registry,
        registrar: Registrar,
        config: Config,
        clock: Clock,
        run: RunTrial = run_trial,
        memory: Callable[[Pool], tuple[int, int]] = memory_of,
    ) -> None:
        self._registry, self._registrar, self._config, self._clock = registry, registrar, config, clock
        self._run, self._memory = run, memory
        self._task: asyncio.Task[None] | None = None
        self._model: ModelVersion | None = None  # that the task is about
        self._ticker = Ticker(clock, LOOK_EVERY, self.look)
        self.begin = self._ticker.begin

    def __repr__(self) -> str:
        return f"<AutoOptimizing {self._model!r}>"

    @property
    def idle(self) -> bool:
        """Whether neither a trial nor a switch is under way."""
        return self._task is None

    async def close(self) -> None:
        """End the trial that runs, and begin none any more."""
        self._ticker.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def look(self) -> None:
        """Take the step that is due for each version."""
        if self._task is not None and self._model is not None and self._is_unwanted(self._model):
            self._task.cancel()
        closed = self._registrar.gate.closed
        for model in self._registry:
            auto = model.auto
            if auto is None or model.stopping:
                continue
            if auto.state is TrialState.CHOSEN:
                self._check_applied(model, auto)
            if auto.state in (TrialState.WAITING, TrialState.SWITCHING) and self._model is not model:
                auto = self._of_now(model, auto)
                if auto.state is TrialState.WAITING:
                    self._wait(model, auto, closed=closed)
                elif auto.state is TrialState.SWITCHING and self._task is None and not closed:
                    self._do(model, self._switch(model, auto))

    def _is_unwanted(self, model: ModelVersion) -> bool:
        """Return whether the trial of a version is to be broken off."""
        auto = model.auto
        if auto is None or auto.state is not TrialState.TRYING:
            return False  # a switch ends by itself
        gone = not self._registry.holds(model.name, model.version)
        gone = gone or self._registry.find(model.name, model.version) is not model or model.being_replaced
        return gone or model.stopping or self._registrar.gate.closed or not _is_of_now(model, auto)

    def _of_now(self, model: ModelVersion, auto: AutoOptimization) -> AutoOptimization:
        """Return the version's trial, which is another one since its batch size or threads were changed."""
        if model.pool.wanted and not _is_of_now(model, auto):
            found = self._registrar.factory.auto_of(model.source, model.settings, model.pool.threads)
            model.auto = auto = found or auto
        return auto

    def _check_applied(self, model: ModelVersion, auto: AutoOptimization) -> None:
        """Forget the chosen set if a worker could not be loaded with it."""
        outcomes = [each for worker in model.pool.workers for each in worker.optimized]
        lost = next((each for each in outcomes if each.name in auto.chosen and not each.applied), None)
        if lost is None or auto.record is None:
            return
        text = f"served without {lost.name}, which a trial has chosen: {lost.reason}"
        last = auto.record.attempts >= ATTEMPTS
        self._keep(auto, msgspec.structs.replace(auto.record, ended=False, chosen=(), text=text))
        auto.move(TrialEvent.FAIL if last else TrialEvent.LOST)
        model.reports.add("trial-failed", text)

    def _wait(self, model: ModelVersion, auto: AutoOptimization, *, closed: bool) -> None:
        now = self._clock.now()
        moment = self._moment(model, auto, now)
        if not is_worth_it(moment):
            auto.since = None
        elif auto.since is None:
            auto.since = now
        waits = waits_for(moment)
        if waits or closed:
            auto.waits = waits or "the end of the daemon's upgrade"
        elif now >= auto.look_again:
            auto.waits = short_of_memory(*self._memory(model.pool))
            if auto.waits:
                auto.look_again = now + AGAIN
            else:
                self._do(model, self._try(model, auto))

    def _moment(self, model: ModelVersion, auto: AutoOptimization, now: float) -> Moment:
        pool, times = model.pool, model.metrics.inference_time
        rollout = self._registry.routes.rollouts.get(model.name)
        ready = 0 < pool.wanted == pool.ready and not model.being_replaced and model.replaces is None
        return Moment(
            asked=auto.asked,
            ready=ready and not (rollout is not None and rollout.going_on),
            answered=sum(times.counts),
            busy=times.sum,
            idle=now - max(each.used_at for each in self._registry),
            waiting=0.0 if auto.since is None else now - auto.since,
            pause=auto.again - now,
            elsewhere=self._task is not None,
        )

    def _do(self, model: ModelVersion, work: Any) -> None:
        self._model, self._task = model, asyncio.ensure_future(work)
        self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._model = self._task = None
        if not task.cancelled():
            task.result()

    async def _try(self, model: ModelVersion, auto: AutoOptimization) -> None:
        source, before = model.source, auto.record
        assert before is not None
        sample = await asyncio.to_thread(
            sample_for, model.sample, source.directory, source.document, source.manifest.handler
        )
        if sample is None:
            auto.waits, auto.look_again = _NO_SAMPLE, self._clock.now() + AGAIN
            return
        record = msgspec.structs.replace(before, attempts=before.attempts + 1, at=time.time(), text="")
        if not self._keep(auto, record):  # else it might be made again and again
            auto.record, auto.waits, auto.look_again = before, _NOT_WRITTEN, self._clock.now() + AGAIN
            return
        auto.move(TrialEvent.BEGIN)
        names = ", ".join(",".join(each) or "the defaults" for each in auto.sets)
        model.reports.add("trial-started", f"a trial compares {names}")
        try:
            environment = model_environment(os.environ, self._config)
            progress = auto.note_progress
            result = await self._run(self._order(model, auto, sample.content_type, len(sample.body)), sample.body,
                                     environment, progress)  # fmt: skip
            choice = choose(result.rows, model.settings.max_memory)
            if not choice.sure:
                raise TrialFailed(choice.text)
        except asyncio.CancelledError:
            self._keep(auto, before)
            auto.move(TrialEvent.BREAK_OFF)
            model.reports.add("trial-ended", "the trial was broken off")
            raise
        except TrialFailed as error:
            self._fail(model, auto, record, f"the trial failed: {error}")
            return
        chosen = tuple(choice.optimize.split(",")) if choice.optimize else ()
        record = msgspec.structs.replace(
            record, at=time.time(), ended=True, chosen=chosen, text=choice.text, rows=tuple(result.rows)
        )
        self._keep(auto, record)
        auto.move(TrialEvent.CHOOSE if chosen else TrialEvent.KEEP)
        model.reports.add("trial-ended", choice.text)

    def _order(self, model: ModelVersion, auto: AutoOptimization, content_type: str, length: int) -> dict[str, Any]:
        """Return the order of the process: see daemon/tools/optimize/order.py."""
        source, settings = model.source, model.settings
        limits = {"batchSize": settings.batch_size, "startupTimeout": LONGEST, "responseTimeout": LONGEST}
        declared = self._config.metrics_config
        return {
            "model": {
                "modelName": model.name, "modelVersion": model.version, "workers": model.pool.wanted,
                "settings": limits,
                "directory": str(source.directory), "handler": source.manifest.handler,
                "manifest": source.manifest.raw, "python": None if source.python is None else str(source.python),
                "devices": [], "optimize": None, "cpus": settings.cpus,
            },
            "settings": {} if declared is None else {"metrics_config": str(declared)},
            "contentType": content_type,
            "seconds": SECONDS,
            "trial": {
                "sets": auto.sets, "threads": model.pool.threads, "bodyBytes": length,
                "stateDir": str(self._config.state_dir),
            },
        }  # fmt: skip

    async def _switch(self, model: ModelVersion, auto: AutoOptimization) -> None:
        record = auto.record
        assert record is not None
        names = ",".join(record.chosen)
        try:
            new = await self._registrar.renew(model, f"the same archive with {names}")
        except (Upgrading, Conflict, Stopping, ModelNotFound, VersionNotFound):
            return  # the next daemon, or the next look, does it; or the version is gone
        except DaemonError as error:
            reason = str(error).partition("\n")[0]
            record = msgspec.structs.replace(record, ended=False, chosen=(), attempts=ATTEMPTS)
            self._fail(model, auto, record, f"{names} was chosen, and its workers could not be started: {reason}")
            return
        auto.move(TrialEvent.SWITCHED)
        new.reports.add("optimized", f"workers with {names} have taken over")

    def _fail(self, model: ModelVersion, auto: AutoOptimization, record: AutoRecord, text: str) -> None:
        self._keep(auto, msgspec.structs.replace(record, at=time.time(), text=text))
        last = record.attempts >= ATTEMPTS
        if not last:
            auto.again = self._clock.now() + PAUSES[record.attempts - 1]
        auto.move(TrialEvent.FAIL if last or auto.state is TrialState.SWITCHING else TrialEvent.AGAIN)
        model.reports.add("trial-failed", text if last else f"{text}; another attempt follows")

    def _keep(self, auto: AutoOptimization, record: AutoRecord) -> bool:
        auto.record = record
        return self._registrar.trials.write(record)


def _is_of_now(model: ModelVersion, auto: AutoOptimization) -> bool:
    return auto.facts.batch_size == model.settings.batch_size and auto.facts.threads == model.pool.threads
