"""The document of the registrations: what was asked for each version, now and before its model's latest change."""

from tests.kit.archives import model_files, write_mar
from tests.kit.daemon import StubDaemon
from tsctl.daemon.extensions.registrations.document import registrations_document
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.registrar import no_progress


async def test_both_states_are_told_and_an_archive_that_was_written_since(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar(), workers=1)
    await bench.registrar.scale(model, 2, 3, synchronous=True, progress=no_progress)
    change_settings(model, {"batch_size": 8})
    await bench.registrar.ledger.remember(model)

    (earlier,) = bench.registrar.ledger.memory.earlier
    now = {
        "name": "m", "version": "1.0", "default": True, "url": "m-1.0.mar", "handler": None,
        "sha256": model.source.directory.name, "settings": {"batchSize": 8}, "fallbackBatchSize": 0,
        "workers": {"min": 2, "max": 3}, "state": "ready", "ephemeral": False, "rewritten": False,
    }  # fmt: skip
    before = {"time": earlier.time, "route": None, "versions": [now | {"settings": {}, "state": ""}]}
    document = registrations_document(bench.registry, bench.registrar.ledger)
    assert document == {"versions": [now], "routes": {}, "earlier": {"m": before}}
    write_mar(bench.store / "m-1.0.mar", model_files() | {"more": b"."})
    assert registrations_document(bench.registry, bench.registrar.ledger)["versions"] == [now | {"rewritten": True}]
