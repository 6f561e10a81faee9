"""A rollout survives its daemon: the next one goes on with the same step, and only once it serves."""

from dataclasses import replace
from pathlib import Path

import pytest

from daemon.models.persistence.encoding import encode_snapshot
from daemon.models.persistence.snapshot import BrokenSnapshot, Snapshot, decode_snapshot
from daemon.models.rollouts.rollout import Rollout, RolloutEvent, RolloutState, parse_conditions
from daemon.models.routing.route import parse_route
from tests.kit.daemon import StubDaemon

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


@pytest.mark.parametrize("changes", [{"step": 2}, {"step": -1}, {"before": ()}, {"conditions": ()}])
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
