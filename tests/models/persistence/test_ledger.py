"""The snapshot has what is registered for good, what is yet to be restored, and each change that is answered."""

from pathlib import Path

from tests.kit.daemon import StubDaemon
from tests.kit.services import NotedDaemon


async def test_what_an_earlier_run_registered_is_kept_until_it_is_restored(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    ledger = bench.registrar.ledger
    (entry,) = bench.remembered.values()

    ledger.pending.append(entry)
    bench.registry.discard(model)
    await ledger.save()
    assert list(bench.remembered) == ["m/1.0"]
    ledger.pending.remove(entry)
    await ledger.save()

    assert list(bench.remembered) == []


async def test_a_directory_of_a_version_that_could_not_start_goes_with_the_next_change_whatever_is_measured_before(
    tmp_path: Path,
) -> None:
    bench = NotedDaemon(tmp_path)
    model, _ = await bench.register(bench.mar()), await bench.register(bench.mar("other"))
    registrar, memory = bench.registrar, bench.registrar.ledger.memory
    assert model.source.unpacked is not None

    bench.registry.discard(model)
    memory.discard(model.name, model.version)
    registrar.directories.release(model.source.unpacked)
    bench.service.measures, bench.service.kept = True, {"seconds": 40.0}
    await registrar.ledger.keep_measured()
    await registrar.ledger.save()

    assert not model.source.unpacked.exists()
