"""A version comes, takes another one's place and goes in one place, which the registry and the metrics follow."""

import pytest

from tests.kit.build import make_model
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.errors import VersionNotFound
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.models.registry import LiveVersions, Registry
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.stub import StubEngine


class Lives:
    def __init__(self) -> None:
        self.registry, self.metrics = Registry(), Metrics()
        self.live = LiveVersions(self.registry, self.metrics)
        clock = FakeClock()
        self.old: ModelVersion = make_model(StubEngine(clock), clock)
        self.new: ModelVersion = make_model(StubEngine(clock), clock)

    @property
    def shown(self) -> list[object]:
        return list(self.metrics.versions)


def test_a_loaded_version_takes_the_place_of_the_old_one() -> None:
    lives = Lives()
    lives.live.add(lives.old)
    lives.live.loading[lives.new] = lives.old
    assert list(lives.live) == [lives.old, lives.new]

    lives.live.switch(lives.new)

    assert list(lives.live) == list(lives.registry) == [lives.new]
    assert lives.shown == [lives.new.metrics]
    assert (lives.new.replaces, lives.new.took_over) == (lives.old, True)


def test_a_version_whose_old_one_was_unregistered_stays_outside() -> None:
    lives = Lives()
    lives.live.add(lives.old)
    lives.live.loading[lives.new] = lives.old
    lives.registry.discard(lives.old)

    with pytest.raises(VersionNotFound):
        lives.live.switch(lives.new)

    assert lives.live.loading == {lives.new: lives.old}
    assert not lives.new.took_over
