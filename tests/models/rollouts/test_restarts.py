"""A rollout survives its daemon: the next one goes on with the same step, and only once it serves."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.daemon import StubDaemon
from tsctl.daemon.models.persistence.encoding import encode_snapshot
from tsctl.daemon.models.persistence.snapshot import BrokenSnapshot, Snapshot, decode_snapshot
from tsctl.daemon.models.rollouts.decision import Decision
from tsctl.daemon.models.rollouts.evidence import Samples
from tsctl.daemon.models.rollouts.rollout import Rollout, RolloutEvent, RolloutState, parse_conditions
from tsctl.daemon.models.rollouts.sequential import Trials
from tsctl.daemon.models.routing.route import parse_route

ROLLOUT = Rollout(
    version="2.0", steps=(10.0, 100.0), every=3600.0, conditions=parse_conditions("", compare=False),
    before=(("1.0", 100.0),),
)  # fmt: skip


async def rolling(tmp_path: Path) -> StubDaemon:
    bench = StubDaemon(tmp_path)
    await bench.register(bench.mar())
    await bench.register(bench.mar(version="2.0"))
    await bench.registrar.rollouts.start("m", ROLLOUT)
    return bench


async def test_the_next_daemon_goes_on_with_the_step(tmp_path: Path) -> None:
    bench = await rolling(tmp_path)
    bench.registrar.rollouts.close()

    again = await bench.restart()
    rollouts = again.registrar.rollouts
    assert again.registry.routes.rollouts["m"] == ROLLOUT
    assert again.registry.routes.of("m") == parse_route("1.0=90 2.0=10")
    assert rollouts._timer is None, "it decides before it serves"
    rollouts.begin()

    assert rollouts._timer is not None
    rollouts.close()


def count(bench: StubDaemon, version: str, good: int, bad: int = 0) -> None:
    """Let a version have answered requests."""
    metrics = bench.registry.find("m", version).metrics
    for status, number in ((200, good), (503, bad)):
        metrics.codes[status] += number
        for _ in range(number):
            metrics.ok.observe(0.01)


def found(bench: StubDaemon) -> list[Trials | None]:
    """Return what the step has shown of each condition."""
    rollouts = bench.registrar.rollouts
    return [each.trials for each in rollouts.findings("m", bench.registry.routes.rollouts["m"])]


async def test_after_a_stop_in_order_the_step_goes_on_with_what_it_had_shown(tmp_path: Path) -> None:
    bench = await rolling(tmp_path)
    count(bench, "1.0", 3000)
    found(bench)  # the bound of the latency is known from now on
    count(bench, "2.0", 30, 2)
    await bench.registrar.rollouts.remember()
    bench.registrar.rollouts.close()

    again = await bench.restart()
    count(again, "2.0", 10)
    assert found(again) == [Trials(32, 2), Trials(32, 0)], "the counts of this daemon began before its first look"
    count(again, "2.0", 5)

    assert found(again) == [Trials(37, 2), Trials(37, 0)]


async def test_what_a_step_had_shown_is_not_that_of_the_next_step(tmp_path: Path) -> None:
    bench = await rolling(tmp_path)
    count(bench, "2.0", 30, 2)
    await bench.registrar.rollouts.remember()
    rollouts, rollout = bench.registrar.rollouts, bench.registry.routes.rollouts["m"]
    assert rollout.samples is not None

    rollouts._follow("m", rollout, Decision(RolloutEvent.PASSED, "a reason"))

    assert bench.registry.routes.rollouts["m"] == replace(ROLLOUT, step=1, reason="a reason")
    assert found(bench) == [Trials(0, 0), None]
    rollouts.close()


async def test_a_stop_without_a_rollout_writes_nothing(tmp_path: Path) -> None:
    bench = await rolling(tmp_path)
    await bench.registrar.rollouts.end("m", RolloutEvent.BACK, "a reason")
    before = bench.snapshot.stat()

    await bench.registrar.rollouts.remember()

    assert bench.snapshot.stat() == before
    bench.registrar.rollouts.close()


async def test_one_that_has_ended_is_kept_to_be_shown_and_does_not_go_on(tmp_path: Path) -> None:
    bench = await rolling(tmp_path)
    await bench.registrar.rollouts.end("m", RolloutEvent.BACK, "a reason")
    bench.registrar.rollouts.close()

    again = await bench.restart()
    again.registrar.rollouts.begin()

    kept = again.registry.routes.rollouts["m"]
    assert (kept.state, kept.reason, again.registrar.rollouts._timer) == (RolloutState.ABORTED, "a reason", None)
    assert not again.registry.routes
    assert again.registry.find("m").version == "1.0"


@pytest.mark.parametrize(
    "changes", [{"step": 2}, {"step": -1}, {"before": ()}, {"conditions": ()}, {"samples": Samples(elapsed=-1.0)}]
)
def test_an_impossible_rollout_makes_a_snapshot_broken(changes: dict[str, object]) -> None:
    written = encode_snapshot(Snapshot(rollouts={"m": replace(ROLLOUT, **changes)}))  # type: ignore[arg-type]

    with pytest.raises(BrokenSnapshot, match="the rollout of m"):
        decode_snapshot(written)


def test_a_rollout_is_written_as_it_is_read() -> None:
    routed = replace(ROLLOUT, route=parse_route("1.0=1 0.9=1", "ip"), state=RolloutState.COMPARING)

    assert decode_snapshot(encode_snapshot(Snapshot(rollouts={"m": routed}))).rollouts == {"m": routed}


@pytest.mark.parametrize(("owned", "state"), [("2.0", RolloutState.ABORTED), ("1.0", RolloutState.PROMOTED)])
async def test_a_program_that_ends_ends_the_rollout_of_its_version(
    tmp_path: Path, owned: str, state: RolloutState
) -> None:
    bench = StubDaemon(tmp_path)
    await bench.register(bench.mar(version=owned), ephemeral=True, owner="token")
    await bench.register(bench.mar(version="1.0" if owned == "2.0" else "2.0"))
    await bench.registrar.set_default("m", "1.0")
    await bench.registrar.rollouts.start("m", ROLLOUT)

    await bench.registrar.unregister_all("token")

    assert bench.registry.routes.rollouts["m"].state is state
    assert bench.names == [f"m/{'1.0' if owned == '2.0' else '2.0'}"]
    bench.registrar.rollouts.close()
