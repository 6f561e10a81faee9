"""The registry: versions by name, one of them the default."""

from tests.kit.build import make_model
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import LoadFailure
from tsctl.daemon.workers.stub import StubEngine


def model(name: str = "m", version: str = "1.0") -> ModelVersion:
    clock = FakeClock()
    return make_model(StubEngine(clock), clock, name=name, version=version)


def failed_model() -> ModelVersion:
    clock = FakeClock()
    model = make_model(StubEngine(clock, load_failure=LoadFailure("broken")), clock)
    model.scale(1, 1)
    clock.settle()
    assert model.state is ModelState.FAILED
    return model


def registry_of(*models: ModelVersion) -> Registry:
    registry = Registry()
    for each in models:
        registry.add(each)
    return registry


def test_the_first_version_is_the_default_until_another_is_chosen_or_it_goes() -> None:
    one, two, three = model(version="1.0"), model(version="2.0"), model(version="3.0")
    registry = registry_of(one, two, three)

    assert registry.find("m") is one
    assert registry.find("m", "2.0") is two
    assert registry.is_default(one) and not registry.is_default(two)
    registry.discard(one)
    assert registry.find("m") is two, "the oldest of the others"
    registry.set_default("m", "3.0")
    assert registry.find("m") is three


def test_a_failed_version_is_replaced_and_discarding_it_changes_nothing() -> None:
    failed, new = failed_model(), model()
    registry = registry_of(failed)

    assert registry.add(new) is failed
    registry.discard(failed)
    registry.discard(model("never registered"))

    assert registry.find("m") is new and list(registry) == [new]
