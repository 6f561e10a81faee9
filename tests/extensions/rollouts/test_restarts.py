"""A rollout survives its daemon: the next one goes on with the same step, and only once it serves."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.kit.daemon import StubDaemon
from tsctl.daemon.extension import Kernel
from tsctl.daemon.extensions.rollouts import RolloutsExtension
from tsctl.daemon.extensions.rollouts.decision import Decision
from tsctl.daemon.extensions.rollouts.evidence import Samples
from tsctl.daemon.extensions.rollouts.rollout import Rollout, RolloutEvent, RolloutState, parse_conditions
from tsctl.daemon.extensions.rollouts.rollouts import Rollouts
from tsctl.daemon.extensions.rollouts.sequential import Trials
from tsctl.daemon.extensions.rollouts.service import RolloutsService
from tsctl.daemon.metrics.histogram import Counts
from tsctl.daemon.models.persistence.snapshot import Snapshot, decode_snapshot, read_snapshot
from tsctl.daemon.models.persistence.snapshot_file import encode_snapshot
from tsctl.daemon.models.routing.route import parse_route
from tsctl.daemon.server.kernel import connect
from tsctl.daemon.workers.stub import StubEngine

ROLLOUT = Rollout(
    version="2.0", steps=(10.0, 100.0), every=3600.0, conditions=parse_conditions("", compare=False),
    before=(("1.0", 100.0),),
)  # fmt: skip


class RollingDaemon(StubDaemon):
    """A registration with the service of rollouts."""

    rollouts: RolloutsService

    def use(self, engine: StubEngine) -> None:
        super().use(engine)
        noted = SimpleNamespace(events=self.registrar.events)
        parts = SimpleNamespace(registry=self.registry, registrar=self.registrar, clock=engine.clock, observation=noted)
        self.rollouts = RolloutsService(cast(Kernel, parts))
        self.rollouts.extension = RolloutsExtension()
        connect(self.registrar, [self.rollouts])


async def rolling(tmp_path: Path) -> RollingDaemon:
    bench = RollingDaemon(tmp_path)
    await bench.register(bench.mar())
    await bench.register(bench.mar(version="2.0"))
    await bench.rollouts.start("m", ROLLOUT)
    return bench


async def test_the_next_daemon_goes_on_with_the_step(tmp_path: Path) -> None:
    bench = await rolling(tmp_path)
    bench.rollouts.close()

    again = await bench.restart()
    rollouts = again.rollouts
    assert again.rollouts.by_model["m"] == ROLLOUT
    assert again.registry.routes.of("m") == parse_route("1.0=90 2.0=10")
    assert list(again.registry.reservations) == ["m"], "other commands may change what it steers"
    assert rollouts._timer is None, "it decides before it serves"
    rollouts.begin()

    assert rollouts._timer is not None
    rollouts.close()


def count(bench: RollingDaemon, version: str, good: int, bad: int = 0) -> None:
    """Let a version have answered requests."""
    metrics = bench.registry.find("m", version).metrics
    for status, number in ((200, good), (503, bad)):
        metrics.codes[status] += number
        for _ in range(number):
            metrics.ok.observe(0.01)


def found(bench: RollingDaemon) -> list[Trials | None]:
    """Return what the step has shown of each condition."""
    rollouts = bench.rollouts
    return [each.trials for each in rollouts.findings("m", bench.rollouts.by_model["m"])]


async def test_after_a_stop_in_order_the_step_goes_on_with_what_it_had_shown(tmp_path: Path) -> None:
    bench = await rolling(tmp_path)
    count(bench, "1.0", 3000)
    found(bench)  # the bound of the latency is known from now on
    count(bench, "2.0", 30, 2)
    await bench.rollouts.settle(replaced=False)

    again = await bench.restart()
    count(again, "2.0", 10)
    assert found(again) == [Trials(32, 2), Trials(32, 0)], "the counts of this daemon began before its first look"
    count(again, "2.0", 5)

    assert found(again) == [Trials(37, 2), Trials(37, 0)]


async def test_what_a_step_had_shown_is_not_that_of_the_next_step(tmp_path: Path) -> None:
    bench = await rolling(tmp_path)
    count(bench, "2.0", 30, 2)
    await bench.rollouts.settle(replaced=False)
    rollouts, rollout = bench.rollouts, bench.rollouts.by_model["m"]
    assert rollout.samples is not None

    rollouts._follow("m", rollout, Decision(RolloutEvent.PASSED, "a reason"))

    assert bench.rollouts.by_model["m"] == replace(ROLLOUT, step=1, reason="a reason")
    assert found(bench) == [Trials(0, 0), None]


async def test_a_stop_without_a_rollout_writes_nothing(tmp_path: Path) -> None:
    written = (bench := await rolling(tmp_path)).snapshot.read_bytes()
    again = await bench.restart(restore="false")

    await again.rollouts.settle(replaced=False)

    assert again.names == []
    assert again.snapshot.read_bytes() == written, "what the daemon did not restore is lost"


async def test_one_that_has_ended_is_kept_to_be_shown_and_does_not_go_on(tmp_path: Path) -> None:
    bench = await rolling(tmp_path)
    await bench.rollouts.end("m", RolloutEvent.BACK, "a reason")
    bench.rollouts.close()

    again = await bench.restart()
    again.rollouts.begin()

    kept = again.rollouts.by_model["m"]
    assert (kept.state, kept.reason, again.rollouts._timer) == (RolloutState.ABORTED, "a reason", None)
    assert not again.registry.routes
    assert again.registry.find("m").version == "1.0"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"step": 2}, "the rollout of m has impossible values"),
        ({"step": -1}, "the rollout of m has impossible values"),
        ({"before": ()}, "the rollout of m has impossible values"),
        ({"conditions": ()}, "the rollout of m has impossible values"),
        ({"conditions": (replace(ROLLOUT.conditions[0], limit=1.5),)}, "the rollout of m has impossible values"),
        ({"samples": Samples(elapsed=-1.0)}, "the rollout of m has impossible values"),
        ({"every": "soon"}, "Expected `float`, got `str`"),
    ],
)
async def test_an_impossible_rollout_is_reported_and_the_models_are_served(
    tmp_path: Path, changes: dict[str, object], why: str
) -> None:
    bench = await rolling(tmp_path)
    bench.rollouts.by_model["m"] = replace(ROLLOUT, **changes)  # type: ignore[arg-type]
    await bench.registrar.ledger.save()
    bench.rollouts.close()

    again = await bench.restart()

    assert again.rollouts.by_model == {}
    assert again.names == ["m/1.0", "m/2.0"]
    (event,) = [each for each in again.registrar.events.after(0) if each.kind == "part-unused"]
    assert why in event.text


def parts_of(rollouts: dict[str, Rollout]) -> bytes:
    return encode_snapshot(Snapshot(extensions={"rollouts": rollouts}))


def test_a_rollout_is_written_as_it_is_read() -> None:
    routed = replace(ROLLOUT, route=parse_route("1.0=1 0.9=1", "ip"), state=RolloutState.COMPARING)
    samples = Samples(elapsed=2.0, trials={"errors>1%": Trials(5, 1)}, before=Counts(5, 1, [5, 0]))
    sampled = replace(ROLLOUT, samples=samples)

    assert taken_up(parts_of({"m": routed, "n": sampled})) == {"m": routed, "n": sampled}


def taken_up(content: bytes) -> dict[str, Rollout]:
    """Return the rollouts that a service takes up from a snapshot's content."""
    service = cast(Rollouts, SimpleNamespace(_reserve=lambda name: None))
    Rollouts.restore(service, decode_snapshot(content).extensions["rollouts"])
    return service.by_model


async def test_a_rollout_of_a_model_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    bench = await rolling(tmp_path)
    await bench.rollouts.end("m", RolloutEvent.BACK, "a reason")
    for version in ("2.0", "1.0"):
        await bench.registrar.unregister("m", version)

    assert bench.rollouts.by_model == {}


async def test_an_upgrade_hands_over_what_the_step_has_shown(tmp_path: Path) -> None:
    bench = await rolling(tmp_path)
    count(bench, "2.0", 5)

    await bench.registrar.ledger.save(last=True)  # as the upgrade does

    written = read_snapshot(bench.snapshot)
    assert written is not None
    assert written.extensions["rollouts"]["m"]["samples"]["trials"]["errors>1%"] == [5, 0]
    bench.rollouts.close()


async def test_all_steps_are_one_change_for_a_rollback(tmp_path: Path) -> None:
    bench = await rolling(tmp_path)
    bench.rollouts._follow("m", ROLLOUT, Decision(RolloutEvent.PASSED, "a reason"))
    await bench.registrar.ledger.save()
    await bench.rollouts.end("m", RolloutEvent.PROMOTE, "a reason")

    (earlier,) = bench.registrar.ledger.memory.earlier
    assert earlier.route is None and [each.default for each in earlier.versions] == [True, False]


@pytest.mark.parametrize(("owned", "state"), [("2.0", RolloutState.ABORTED), ("1.0", RolloutState.PROMOTED)])
async def test_a_program_that_ends_ends_the_rollout_of_its_version(
    tmp_path: Path, owned: str, state: RolloutState
) -> None:
    bench = RollingDaemon(tmp_path)
    await bench.register(bench.mar(version=owned), ephemeral=True, owner="token")
    await bench.register(bench.mar(version="1.0" if owned == "2.0" else "2.0"))
    await bench.registrar.set_default("m", "1.0")
    await bench.rollouts.start("m", ROLLOUT)

    await bench.registrar.unregister_all("token")

    assert bench.rollouts.by_model["m"].state is state
    assert bench.names == [f"m/{'1.0' if owned == '2.0' else '2.0'}"]
    bench.rollouts.close()
