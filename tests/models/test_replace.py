"""A replacement beside other changes; how replacements go is in `registrations/replacing.txt`."""

import pytest

from tests.kit.daemon import NEVER, StubDaemon
from tests.models.replacements import begin, other, ready, replace
from tsctl.daemon.core.errors import VersionNotFound


async def test_without_waiting_it_is_a_change_that_an_upgrade_waits_for(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    bench.engine.load_time = NEVER

    await replace(bench, other(bench), synchronous=False)

    gate = bench.registrar.gate
    assert repr(gate) == "<Gate open, 1 inside>"
    await bench.registrar.stop_now()
    await gate.emptied()


async def test_one_that_has_lost_its_place_meanwhile_is_not_brought_back(bench: StubDaemon) -> None:
    old = await bench.register(bench.mar())
    loading = await begin(bench, other(bench))
    bench.registry.discard(old)  # as a list of models does that names another archive

    ready(bench)
    with pytest.raises(VersionNotFound, match="was unregistered while it was being replaced"):
        await loading

    assert bench.names == [] and bench.unpacked == 1  # the old one's, which is not ours to remove
