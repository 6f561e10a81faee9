"""The rollouts of all models: once a second the decision of each, and its effect on the model's route.

A change is made inside the gate: while the daemon is being upgraded none begins, and the next daemon goes on.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from tsctl.daemon.core.clock import Timer
from tsctl.daemon.core.errors import BadRequest, Conflict, NotRemembered, Upgrading
from tsctl.daemon.core.states import follow
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.rollouts.conditions import together
from tsctl.daemon.extensions.rollouts.decision import Decision, Finding, decide, find
from tsctl.daemon.extensions.rollouts.evidence import StepRecord
from tsctl.daemon.extensions.rollouts.rollout import TRANSITIONS, Rollout, RolloutEvent, RolloutState, is_possible
from tsctl.daemon.extensions.rollouts.sequential import Trials
from tsctl.daemon.metrics.histogram import Counts
from tsctl.daemon.models.registry import Reservation
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.routing.route import Route
from tsctl.daemon.models.routing.routes import Agreement
from tsctl.daemon.models.version import ModelVersion

LOOK = 1.0  # seconds between two decisions


class RolloutGoingOn(Conflict):
    """A rollout steers the model, and a change by hand would contradict it."""

    def __init__(self, name: str, version: str) -> None:
        super().__init__(
            name,
            version,
            f"A rollout of version {version} of model {name} is going on. End it first: `tsctl promote {name}` or"
            f" `tsctl abort {name}`.",
        )


class Rollouts(Service):
    """Carries out the rollouts of all models.

    Attributes:
        by_model: also those that have ended; each steers its model's route while it goes on.
    """

    def __init__(self, kernel: Kernel) -> None:
        registrar = kernel.registrar
        self.by_model: dict[str, Rollout] = {}
        self._registry, self._changes = kernel.registry, registrar.routes
        self._ledger, self._gate = registrar.ledger, registrar.gate
        self._clock, self._events = kernel.clock, kernel.observation.events
        self._records: dict[str, StepRecord] = {}
        self._first: dict[str, Counts] = {}  # of the versions before, when this daemon began with the rollout
        self._timer: Timer | None = None
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        kernel.registry.forgetting = self._forget

    def keep(self, *, last: bool) -> Mapping[str, Any] | None:
        if last:
            self._keep_samples()
        return dict(self.by_model) or None

    def restore(self, kept: Any) -> None:
        rollouts = msgspec.convert(kept, dict[str, Rollout])
        for name, rollout in rollouts.items():
            if not is_possible(rollout):
                raise ValueError(f"the rollout of {name} has impossible values")
        self.by_model = rollouts
        for name in rollouts:
            self._reserve(name)

    def _forget(self, gone: Callable[[str], bool]) -> None:
        """Forget the rollouts of models that are gone."""
        for name in list(filter(gone, self.by_model)):
            del self.by_model[name]
            self._reserve(name)

    def begin(self) -> None:
        """Go on with the rollouts of an earlier run: the daemon serves."""
        self._arm()

    async def settle(self, *, replaced: bool) -> None:
        """Write the findings of each step to the snapshot, and decide nothing more; the next daemon goes on."""
        # Otherwise nothing is written: another daemon has the snapshot, or it is one that `--no-restore` left alone.
        if not replaced and self._keep_samples():
            with suppress(NotRemembered):  # logged already
                await self._ledger.save()
        self.close()

    def close(self) -> None:
        """Decide nothing more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _keep_samples(self) -> bool:
        """Put the findings of each step into its rollout, for the next snapshot; return whether any goes on."""
        kept = False
        for name, rollout in self.by_model.items():
            if rollout.going_on and self._registry.holds(name, rollout.version):
                record, facts = self._record(name, rollout)
                samples = record.samples(rollout.counted, self._clock.now(), *facts)
                self.by_model[name], kept = replace(rollout, samples=samples), True
        return kept

    def check(self, name: str, rollout: Rollout) -> None:
        """Check a rollout that is to start.

        Raises:
            ModelNotFound: no model has this name.
            VersionNotFound: the model has no such version.
            DaemonError: the model is reserved, as by another rollout.
            Conflict: the new version is no longer, or not yet, able to serve.
            BadRequest: the new version answers all requests already, or a comparison would repeat effects.
        """
        self._registry.check_unreserved(name)
        model = self._registry.find(name, rollout.version)
        if not rollout.before:
            raise BadRequest(f"Version {rollout.version} of model {name} answers all requests already.")
        if model.state is ModelState.FAILED or model.stopping:
            raise Conflict(name, rollout.version, f"Version {rollout.version} of model {name} is {model.word}.")
        self._changes.check(name, rollout.routed())

    def before(self, name: str, version: str) -> tuple[tuple[tuple[str, float], ...], Route | None]:
        """Return the weights that a rollout of a version would begin with, without that version; and the route.

        Raises:
            ModelNotFound: no model has this name.
        """
        default = self._registry.find(name).version
        route = self._registry.routes.of(name)
        weights = ((default, 100.0),) if route is None else route.weights
        return tuple(each for each in weights if each[0] != version), route

    async def start(self, name: str, rollout: Rollout) -> None:
        """Start a rollout.

        Raises:
            DaemonError: as `check`; nothing is changed.
            NotRemembered: the rollout has started, but the snapshot could not be written.
        """
        self.check(name, rollout)
        self.by_model[name] = rollout
        self._reserve(name)
        steps = ", ".join(f"{step:g} %" for step in rollout.steps)
        self._tell("rollout-started", name, rollout, f"a rollout by {steps} begins, each for {rollout.every:g} s")
        self._first.pop(name, None)
        self._enter(name, rollout)
        self._arm()
        await self._ledger.save()

    async def end(self, name: str, event: RolloutEvent, reason: str) -> Rollout:
        """Promote the new version of a rollout, or go back, by command.

        Raises:
            Conflict: no rollout of the model is going on.
            NotRemembered: the change is applied, but the snapshot could not be written.
        """
        rollout = self.going_on(name)
        ended = self._follow(name, rollout, Decision(event, reason))
        await self._ledger.save()
        return ended

    def going_on(self, name: str) -> Rollout:
        """Return the rollout of a model that is going on.

        Raises:
            ModelNotFound: no model has this name.
            Conflict: there is none.
        """
        self._registry.find(name)
        rollout = self.by_model.get(name)
        if rollout is None or not rollout.going_on:
            raise Conflict(name, "", f"No rollout of model {name} is going on.")
        return rollout

    async def release(self, model: ModelVersion, why: str) -> None:
        """End the rollout that needs a version which must go.

        Raises:
            NotRemembered: the rollout has ended, but the snapshot could not be written.
        """
        is_new = model.version == self.by_model[model.name].version
        await self.end(model.name, RolloutEvent.BACK if is_new else RolloutEvent.PROMOTE, why)

    def _reserve(self, name: str) -> None:
        """Reserve a model as long as its rollout goes on."""
        rollout = self.by_model.get(name)
        if rollout is None or not rollout.going_on:
            self._registry.reservations.pop(name, None)
        else:
            refusal = partial(RolloutGoingOn, name, rollout.version)
            self._registry.reservations[name] = Reservation(rollout.versions, refusal, self.release)

    def findings(self, name: str, rollout: Rollout) -> list[Finding]:
        """Return the evidence of the present step's requests."""
        if not rollout.going_on or not self._registry.holds(name, rollout.version):
            return []
        record, facts = self._record(name, rollout)
        return find(rollout, [(each, record.trials(each, *facts)) for each in rollout.counted])

    def decision(self, name: str, rollout: Rollout) -> Decision:
        """Return the decision about a rollout that is going on."""
        findings = self.findings(name, rollout)
        record = self._records.get(name)
        elapsed = 0.0 if record is None else self._clock.now() - record.began
        return decide(rollout, findings, elapsed, self._failure(name, rollout))

    def look(self) -> None:
        """Decide about each rollout, and follow the decision."""
        self._timer = None
        self._arm()  # first: a decision that raises must not be the last one
        for name, rollout in list(self.by_model.items()):
            if rollout.going_on and not self._registry.expects(name):
                decision = self.decision(name, rollout)
                if decision.event is not None:
                    self._in_background(self._change(name, rollout, decision))

    def _arm(self) -> None:
        going_on = any(each.going_on for each in self.by_model.values())
        if not self._closed and going_on and self._timer is None:
            self._timer = self._clock.later(LOOK, self.look)

    async def _change(self, name: str, rollout: Rollout, decision: Decision) -> None:
        with suppress(Upgrading, NotRemembered), self._gate.change():  # the former: later, or by the next daemon
            if self.by_model.get(name) is rollout:  # else a command came first
                self._follow(name, rollout, decision)
                await self._ledger.save()

    def _follow(self, name: str, rollout: Rollout, decision: Decision) -> Rollout:
        """Follow an arrow of the drawing: set the route, and tell of it."""
        assert decision.event is not None
        was = rollout.state
        state = follow(TRANSITIONS, was, decision.event)
        step = rollout.step + 1 if was is state is RolloutState.STEPPING else rollout.step
        rollout = replace(rollout, state=state, step=step, reason=decision.reason, samples=None)
        self.by_model[name] = rollout
        self._reserve(name)
        match state:
            case RolloutState.ABORTED:
                self._leave(name, rollout.route, rollout.before[0][0])
                self._tell("rollout-aborted", name, rollout, f"taken back: {decision.reason}")
            case RolloutState.PROMOTED:
                self._leave(name, None, rollout.version)
                self._tell("rollout-promoted", name, rollout, f"answers all requests: {decision.reason}")
            case _:
                self._tell("rollout-advanced", name, rollout, f"{rollout.share:g} % from now on: {decision.reason}")
                self._enter(name, rollout)
        return rollout

    def _enter(self, name: str, rollout: Rollout) -> None:
        self._records.pop(name, None)
        self._changes.apply(name, rollout.routed())
        self.findings(name, rollout)  # the step's counts begin now

    def _leave(self, name: str, route: Route | None, default: str) -> None:
        self._records.pop(name, None)
        self._first.pop(name, None)
        if route is not None:
            self._changes.apply(name, route)
            return
        self._registry.routes.put(name, None)
        if self._registry.holds(name, default):
            self._ledger.choose_default(name, default)

    def _failure(self, name: str, rollout: Rollout) -> str:
        """Return why the new version cannot serve; empty while it can."""
        if not self._registry.holds(name, rollout.version):
            return "the version is not registered any more"
        model = self._registry.find(name, rollout.version)
        if model.state is not ModelState.FAILED:
            return ""
        failure = model.pool.failure
        return f"no worker can load the version: {failure.error}" if failure is not None else "the version has failed"

    def _record(self, name: str, rollout: Rollout) -> tuple[StepRecord, tuple[Counts, Counts, Trials]]:
        """Return the record of the present step, which begins now if there is none, and what it is asked with.

        That is the counts of the new version, of those before, and of compared answers.
        """
        new = self._counts(name, [rollout.version])
        before = self._counts(name, [version for version, _ in rollout.before])
        compared = self._compared(name, rollout.version)
        record, samples = self._records.get(name), rollout.samples
        if record is not None and not record.is_of(new):
            record, samples = None, None  # the version was registered anew
        if record is None:
            first = self._first.get(name, before)
            record = self._records[name] = StepRecord(self._clock.now(), new, first, compared, samples)
            self._first[name] = record.before
        return record, (new, before, compared)

    def _counts(self, name: str, versions: Iterable[str]) -> Counts:
        held = [version for version in versions if self._registry.holds(name, version)]
        return together([self._registry.find(name, version).metrics.counts for version in held])

    def _compared(self, name: str, version: str) -> Trials:
        counts = self._registry.routes.copies.get((name, version), Counter())
        total = sum(counts[each.value] for each in Agreement)
        return Trials(total, counts[Agreement.DIFFERENT.value] + counts[Agreement.FAILED.value])

    def _tell(self, kind: str, name: str, rollout: Rollout, text: str) -> None:
        self._events.add(kind, text, model=name, version=rollout.version)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._tasks.discard)
