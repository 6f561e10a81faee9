"""A route is checked, applied at once, kept over restarts, and keeps its versions registered."""

from pathlib import Path

import pytest

from tests.kit.daemon import StubDaemon
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.models.persistence.snapshot import BrokenSnapshot, decode_snapshot
from tsctl.daemon.models.routing.changes import RouteChanges
from tsctl.daemon.models.routing.route import Route, parse_route
from tsctl.daemon.models.routing.routes import RoutedVersion

HALVES = parse_route("1.0=50 2.0=50", "ip")


async def serving(tmp_path: Path) -> tuple[StubDaemon, RouteChanges]:
    bench = StubDaemon(tmp_path)
    await bench.register(bench.mar())
    await bench.register(bench.mar(version="2.0"))
    return bench, changes_of(bench)


def changes_of(bench: StubDaemon) -> RouteChanges:
    bench.registry.routes.copier = lambda name, route: None
    return RouteChanges(bench.registry, bench.registrar.ledger, bench.registrar.events)


async def test_a_route_survives_a_restart_with_the_models_and_so_does_its_removal(tmp_path: Path) -> None:
    bench, changes = await serving(tmp_path)

    await changes.set("m", HALVES)
    again = await bench.restart()
    assert again.registry.routes.of("m") == HALVES
    assert not (await bench.restart(restore="false")).registry.routes
    again = await bench.restart()
    await again.registrar.set_default("m", "2.0")

    assert not (await again.restart()).registry.routes
    assert again.registry.find("m").version == "2.0"


async def test_the_version_with_the_largest_weight_becomes_the_default(tmp_path: Path) -> None:
    bench, changes = await serving(tmp_path)

    await changes.set("m", parse_route("1.0=10 2.0=90"))
    assert bench.registry.find("m").version == "2.0"
    await changes.remove("m")

    assert bench.registry.find("m").version == "2.0"


async def test_a_shadow_is_not_unregistered_and_any_other_version_is(tmp_path: Path) -> None:
    bench, changes = await serving(tmp_path)
    await bench.register(bench.mar(version="3.0"))
    await changes.set("m", parse_route("1.0=1", shadow="2.0", allow_effects=True))

    with pytest.raises(RoutedVersion, match="sends copies of requests"):
        await bench.registrar.unregister("m", "2.0")
    await bench.registrar.unregister("m", "3.0")

    assert bench.names == ["m/1.0", "m/2.0"]


async def test_a_shadow_must_be_repeatable_or_allowed_and_somebody_must_copy_requests(tmp_path: Path) -> None:
    bench, changes = await serving(tmp_path)
    allowed = parse_route("1.0=1", shadow="2.0", allow_effects=True)

    with pytest.raises(BadRequest, match="is not declared repeatable"):
        await changes.set("m", parse_route("1.0=1", shadow="2.0"))
    copier, bench.registry.routes.copier = bench.registry.routes.copier, None
    with pytest.raises(BadRequest, match="This daemon copies no requests"):
        await changes.set("m", allowed)
    assert not bench.registry.routes
    bench.registry.routes.copier = copier
    await changes.set("m", allowed)

    assert bench.registry.routes.of("m") is not None


async def test_the_versions_of_a_served_program_take_their_weight_along(bench: StubDaemon) -> None:
    await bench.register(bench.mar(version="3.0"), ephemeral=True, owner="token")
    await bench.register(bench.mar())
    changes = changes_of(bench)
    await changes.set("m", parse_route("1.0=50 3.0=50"))
    await bench.registrar.set_default("m", "1.0")
    await changes.set("m", parse_route("1.0=50 3.0=50"))

    await bench.registrar.unregister_all("token")

    assert bench.registry.routes.of("m") == Route(weights=(("1.0", 50.0),))


async def test_a_change_is_an_event(tmp_path: Path) -> None:
    bench, changes = await serving(tmp_path)

    await changes.set("m", HALVES)
    await changes.remove("m")

    texts = [event.text for event in bench.registrar.events.after(0) if event.kind == "route-changed"]
    assert texts == [
        "routed: 1.0=50 2.0=50, sticky by address",
        "the route was removed; 1.0 answers",
    ]


def test_a_route_with_impossible_weights_makes_a_snapshot_broken() -> None:
    content = b'{"models": [], "routes": {"m": {"weights": [["1.0", 0.0]]}}}'

    with pytest.raises(BrokenSnapshot, match="the route of m"):
        decode_snapshot(content)


async def test_a_route_ends_with_its_model(tmp_path: Path) -> None:
    bench, changes = await serving(tmp_path)
    await changes.set("m", HALVES)

    for model in list(bench.registry):
        bench.registry.discard(model)

    assert not bench.registry.routes


async def test_a_route_whose_model_is_not_restored_does_not_wait_for_another_one(bench: StubDaemon) -> None:
    await bench.register(bench.mar("e"), ephemeral=True, owner="token")
    await bench.register(bench.mar("e", version="2.0"))
    await changes_of(bench).set("e", parse_route("1.0=1 2.0=1"))
    model = bench.registry.find("e", "2.0")
    bench.registry.routes.drop("e", "2.0")
    bench.registry.remove("e", model.version)
    await bench.registrar.ledger.save()

    again = await bench.restart()

    assert again.names == [] and not again.registry.routes
