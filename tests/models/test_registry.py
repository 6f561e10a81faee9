"""The registry: versions by name, one of them the default."""

import pytest

from tests.kit.build import make_model
from tests.kit.clock import FakeClock
from tests.kit.stub import StubEngine
from tsctl.daemon.core.errors import Conflict, DefaultVersionKept, ModelNotFound, VersionNotFound
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import LoadFailure


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


def test_models_are_listed_by_name_and_versions_as_they_came() -> None:
    registry = registry_of(model("b", "2"), model("a"), model("b", "1"))

    assert [f"{each.name}/{each.version}" for each in registry] == ["a/1.0", "b/2", "b/1"]
    assert [each.version for each in registry.versions("b")] == ["2", "1"]
    assert [each.version for each in registry.defaults()] == ["1.0", "2"]
    assert repr(registry) == "<Registry a/1.0 b/2 b/1>"


def test_what_is_not_registered_is_not_found() -> None:
    registry = registry_of(model())

    with pytest.raises(ModelNotFound, match=r"^Model not found: x$"):
        registry.find("x")
    with pytest.raises(VersionNotFound, match=r"^Model version: 9 does not exist for model: m$"):
        registry.find("m", "9")
    with pytest.raises(ModelNotFound):
        registry.versions("x")
    with pytest.raises(ModelNotFound):
        registry.remove("x")


def test_the_same_version_twice_is_a_conflict() -> None:
    first = model()
    registry = registry_of(first)

    with pytest.raises(Conflict, match=r"Model version 1.0 is already registered for model m"):
        registry.add(model())

    assert registry.find("m") is first


def test_only_a_registered_version_can_be_the_default() -> None:
    registry = registry_of(model())

    with pytest.raises(VersionNotFound, match=r"^Model version 9 does not exist for model m$"):
        registry.set_default("m", "9")
    with pytest.raises(ModelNotFound):
        registry.set_default("x", "1.0")

    assert registry.find("m").version == "1.0"


def test_the_default_stays_while_others_are_there() -> None:
    registry = registry_of(model(version="1.0"), model(version="2.0"))

    with pytest.raises(DefaultVersionKept, match="Cannot remove default version for model m"):
        registry.remove("m")
    with pytest.raises(DefaultVersionKept):
        registry.remove("m", "1.0")

    assert registry.remove("m", "2.0").version == "2.0"
    assert registry.remove("m").version == "1.0"
    assert list(registry) == []
    again = model(version="7")
    registry.add(again)
    assert registry.find("m") is again and registry.is_default(again)


def test_a_failed_version_is_replaced_and_discarding_it_changes_nothing() -> None:
    failed, new = failed_model(), model()
    registry = registry_of(failed)

    assert registry.add(new) is failed
    registry.discard(failed)
    registry.discard(model("never registered"))

    assert registry.find("m") is new and list(registry) == [new]
