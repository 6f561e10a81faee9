"""The trials of all versions of a registry: one at a time, each in a process of the lowest priority.

A look each second costs little: most versions have no trial, or one that has ended. A set that is chosen takes over as
a replacement of the version by itself: new workers load beside those that serve, and no request fails.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tsctl.daemon.config.config import Config
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.core.clock import Clock, Ticker
from tsctl.daemon.core.errors import Conflict, DaemonError, ModelNotFound, Stopping, Upgrading, VersionNotFound
from tsctl.daemon.core.machine.processes import available, taken
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.extension import Service
from tsctl.daemon.extensions.optimizing import BUILT_IN
from tsctl.daemon.extensions.optimizing.building import trial_for
from tsctl.daemon.extensions.optimizing.choice import choose
from tsctl.daemon.extensions.optimizing.documents import optimized_of, trial_of
from tsctl.daemon.extensions.optimizing.due import ATTEMPTS, PAUSES, Moment, is_worth_it, short_of_memory, waits_for
from tsctl.daemon.extensions.optimizing.program import LONGEST, RunTrial, TrialFailed, run_trial, sample_for
from tsctl.daemon.extensions.optimizing.record import TrialRecord, store_of
from tsctl.daemon.extensions.optimizing.trial import Trial, TrialEvent, TrialState
from tsctl.daemon.extensions.registrations.document import registrations_routes
from tsctl.daemon.http.router import Audience, Route
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import local_pid
from tsctl.daemon.workers.pool import Pool
from tsctl.handlers.names import AUTO, usual_optimizations

LOOK_EVERY = 1.0  # seconds
AGAIN = 30.0  # seconds until memory, or a sample, is looked for again
SECONDS = 2.0  # seconds that each set is measured
_NOT_WRITTEN = "its record, which cannot be written: see the disk of the state directory"
_NO_SAMPLE = "a request to repeat: name a file of the archive as `warmup`, or set `recordInput`"


def is_tried(optimize: Sequence[str] | None, handler: str, wish: str) -> bool:
    """Return whether a version has, or would have, a trial.

    Args:
        optimize: as in ModelSettings.
        wish: the daemon's setting `auto_optimize`.
    """
    return optimize == (AUTO,) or (optimize is None and wish == BUILT_IN and bool(usual_optimizations(handler)))


def memory_of(pool: Pool) -> tuple[int, int]:
    """Return the bytes of the largest worker, and those that are left. Blocks for milliseconds."""
    pids = [pid for pid in map(local_pid, pool.workers) if pid]
    return max(map(taken, pids)), min(available()).left


class OptimizingService(Service):
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
        self._store = store_of(config.state_dir)
        self._by_version: dict[ModelVersion, Trial] = {}
        self._task: asyncio.Task[None] | None = None
        self._model: ModelVersion | None = None  # that the task is about
        self._ticker = Ticker(clock, LOOK_EVERY, self.look)

    def __repr__(self) -> str:
        return f"<OptimizingService {self._model!r}>"

    def of(self, model: ModelVersion) -> Trial | None:
        """Return the trial of a version; None if it is not one that is tried."""
        return self._by_version.get(model)

    def follow(self, model: ModelVersion) -> None:
        """Let a version that was made begin with the set that a trial has chosen."""
        if model in self._by_version or model.lost:
            return
        if is_tried(model.settings.optimize, model.source.manifest.handler, self._config.auto_optimize):
            trial = self._by_version[model] = trial_for(model, self._config, self._store)
            model.pool.tell_workers(optimize=None if trial.names is None else list(trial.names))

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        if view is VersionView.DESCRIPTION:
            return {"optimize": optimized_of(model), "trial": trial_of(self.of(model))}
        if view is VersionView.WORKER and (trial := self.of(model)) is not None:
            return {"optimize": list(trial.chosen) or None}
        return {}

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        operators = audience is Audience.OPERATORS
        return registrations_routes(self._registry, self._registrar.ledger) if operators else {}

    def begin(self) -> None:
        self._ticker.begin()

    @property
    def idle(self) -> bool:
        """Whether neither a trial nor a switch is under way."""
        return self._task is None

    async def settle(self, *, replaced: bool) -> None:
        """End the trial that runs, and begin none any more."""
        del replaced
        self._ticker.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def look(self) -> None:
        """Take the step that is due for each version."""
        if self._task is not None and self._model is not None and self._is_unwanted(self._model):
            self._task.cancel()
        closed, lives = self._registrar.gate.closed, {*self._registrar.live, self._model}
        self._by_version = {model: trial for model, trial in self._by_version.items() if model in lives}
        for model in self._registry:
            trial = self.of(model)
            if trial is None or model.stopping:
                continue
            if trial.state is TrialState.CHOSEN:
                self._check_applied(model, trial)
            if trial.state in (TrialState.WAITING, TrialState.SWITCHING) and self._model is not model:
                trial = self._of_now(model, trial)
                if trial.state is TrialState.WAITING:
                    self._wait(model, trial, closed=closed)
                elif trial.state is TrialState.SWITCHING and self._task is None and not closed:
                    self._do(model, self._switch(model, trial))

    def _is_unwanted(self, model: ModelVersion) -> bool:
        """Return whether the trial of a version is to be broken off."""
        trial = self.of(model)
        if trial is None or trial.state is not TrialState.TRYING:
            return False  # a switch ends by itself
        gone = not self._registry.holds(model.name, model.version)
        gone = gone or self._registry.find(model.name, model.version) is not model or model.being_replaced
        return gone or model.stopping or self._registrar.gate.closed or not _is_of_now(model, trial)

    def _of_now(self, model: ModelVersion, trial: Trial) -> Trial:
        """Return the version's trial, which is another one since its batch size or threads were changed."""
        if model.pool.wanted and not _is_of_now(model, trial):
            trial = self._by_version[model] = trial_for(model, self._config, self._store, model.pool.threads)
        return trial

    def _check_applied(self, model: ModelVersion, trial: Trial) -> None:
        """Forget the chosen set if a worker could not be loaded with it."""
        outcomes = [each for worker in model.pool.workers if worker.report for each in worker.report.optimized]
        lost = next((each for each in outcomes if each.name in trial.chosen and not each.applied), None)
        if lost is None or trial.record is None:
            return
        text = f"served without {lost.name}, which a trial has chosen: {lost.reason}"
        last = trial.record.attempts >= ATTEMPTS
        self._keep(trial, msgspec.structs.replace(trial.record, ended=False, chosen=(), text=text))
        trial.move(TrialEvent.FAIL if last else TrialEvent.LOST)
        model.reports.add("trial-failed", text)

    def _wait(self, model: ModelVersion, trial: Trial, *, closed: bool) -> None:
        now = self._clock.now()
        moment = self._moment(model, trial, now)
        if not is_worth_it(moment):
            trial.since = None
        elif trial.since is None:
            trial.since = now
        waits = waits_for(moment)
        if waits or closed:
            trial.waits = waits or "the end of the daemon's upgrade"
        elif now >= trial.look_again:
            trial.waits = short_of_memory(*self._memory(model.pool))
            if trial.waits:
                trial.look_again = now + AGAIN
            else:
                self._do(model, self._try(model, trial))

    def _moment(self, model: ModelVersion, trial: Trial, now: float) -> Moment:
        pool, times = model.pool, model.metrics.inference_time
        reserved = model.name in self._registry.reservations
        ready = 0 < pool.wanted == pool.ready and not model.being_replaced and model.replaces is None
        return Moment(
            asked=trial.asked,
            ready=ready and not reserved,
            answered=sum(times.counts),
            busy=times.sum,
            idle=now - max(each.path.used_at for each in self._registry),
            waiting=0.0 if trial.since is None else now - trial.since,
            pause=trial.again - now,
            elsewhere=self._task is not None,
        )

    def _do(self, model: ModelVersion, work: Any) -> None:
        self._model, self._task = model, asyncio.ensure_future(work)
        self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._model = self._task = None
        if not task.cancelled():
            task.result()

    async def _try(self, model: ModelVersion, trial: Trial) -> None:
        source, before = model.source, trial.record
        assert before is not None
        sample = await asyncio.to_thread(
            sample_for, model.sample, source.directory, source.document, source.manifest.handler
        )
        if sample is None:
            trial.waits, trial.look_again = _NO_SAMPLE, self._clock.now() + AGAIN
            return
        record = msgspec.structs.replace(before, attempts=before.attempts + 1, at=time.time(), text="")
        if not self._keep(trial, record):  # else it might be made again and again
            trial.record, trial.waits, trial.look_again = before, _NOT_WRITTEN, self._clock.now() + AGAIN
            return
        trial.move(TrialEvent.BEGIN)
        names = ", ".join(",".join(each) or "the defaults" for each in trial.sets)
        model.reports.add("trial-started", f"a trial compares {names}")
        try:
            environment = model_environment(os.environ, self._config)
            progress = trial.note_progress
            result = await self._run(self._order(model, trial, sample.content_type, len(sample.body)), sample.body,
                                     environment, progress)  # fmt: skip
            choice = choose(result.rows, model.settings.max_memory)
            if not choice.sure:
                raise TrialFailed(choice.text)
        except asyncio.CancelledError:
            self._keep(trial, before)
            trial.move(TrialEvent.BREAK_OFF)
            model.reports.add("trial-ended", "the trial was broken off")
            raise
        except TrialFailed as error:
            self._fail(model, trial, record, f"the trial failed: {error}")
            return
        chosen = tuple(choice.optimize.split(",")) if choice.optimize else ()
        record = msgspec.structs.replace(
            record, at=time.time(), ended=True, chosen=chosen, text=choice.text, rows=tuple(result.rows)
        )
        self._keep(trial, record)
        trial.move(TrialEvent.CHOOSE if chosen else TrialEvent.KEEP)
        model.reports.add("trial-ended", choice.text)

    def _order(self, model: ModelVersion, trial: Trial, content_type: str, length: int) -> dict[str, Any]:
        """Return the order of the process: see daemon/extensions/optimizing/measuring/__main__.py."""
        source, settings = model.source, model.settings
        limits = {"batchSize": settings.batch_size, "startupTimeout": LONGEST, "responseTimeout": LONGEST}
        declared = self._config.metrics_config
        return {
            "model": {
                "modelName": model.name, "modelVersion": model.version, "workers": model.pool.wanted,
                "settings": limits,
                "directory": str(source.directory), "handler": source.manifest.handler,
                "manifest": source.manifest.raw, "python": None if source.python is None else str(source.python),
                "devices": [], "cpus": settings.cpus,
            },
            "settings": {} if declared is None else {"metrics_config": str(declared)},
            "contentType": content_type,
            "seconds": SECONDS,
            "trial": {
                "sets": trial.sets, "threads": model.pool.threads, "bodyBytes": length,
                "stateDir": str(self._config.state_dir),
            },
        }  # fmt: skip

    async def _switch(self, model: ModelVersion, trial: Trial) -> None:
        record = trial.record
        assert record is not None
        names = ",".join(record.chosen)
        try:
            new = await self._registrar.renew(model, f"the same archive with {names}")
        except (Upgrading, Conflict, Stopping, ModelNotFound, VersionNotFound):
            return  # the next daemon, or the next look, does it; or the version is gone
        except DaemonError as error:
            reason = str(error).partition("\n")[0]
            record = msgspec.structs.replace(record, ended=False, chosen=(), attempts=ATTEMPTS)
            self._fail(model, trial, record, f"{names} was chosen, and its workers could not be started: {reason}")
            return
        trial.move(TrialEvent.SWITCHED)
        new.reports.add("optimized", f"workers with {names} have taken over")

    def _fail(self, model: ModelVersion, trial: Trial, record: TrialRecord, text: str) -> None:
        self._keep(trial, msgspec.structs.replace(record, at=time.time(), text=text))
        last = record.attempts >= ATTEMPTS
        if not last:
            trial.again = self._clock.now() + PAUSES[record.attempts - 1]
        trial.move(TrialEvent.FAIL if last or trial.state is TrialState.SWITCHING else TrialEvent.AGAIN)
        model.reports.add("trial-failed", text if last else f"{text}; another attempt follows")

    def _keep(self, trial: Trial, record: TrialRecord) -> bool:
        trial.record = record
        return self._store.write(record)


def _is_of_now(model: ModelVersion, trial: Trial) -> bool:
    return trial.facts.batch_size == model.settings.batch_size and trial.facts.threads == model.pool.threads
