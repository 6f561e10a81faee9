"""Where nobody names a batch size, the client's fallback counts for handlers that take batches, and for no other."""

from pathlib import Path
from typing import Any

import pytest

from tests.kit.archives import model_files, write_files
from tests.kit.daemon import NEVER, StubDaemon, until
from tests.models.replacements import other, ready, replace
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.registering.spec import default_batch_size
from tsctl.daemon.models.registrar import Registration
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.wire import Declared, Input, Loaded


def declared(*, batches: bool = True, batch_size: int = 0, waits: bool = False) -> Declared:
    return Declared([Input("texts", "text", "list[str]")], batches, batch_size, output="list[dict]", waits=waits)


BUILT_IN = Declared([Input("data", "image")], batches=True, built_in=True)


@pytest.mark.parametrize(
    ("fallback", "handler", "says", "expected"),
    [
        pytest.param(0, "image_classifier", None, (1, "default"), id="built in, without a fallback: as in TorchServe"),
        pytest.param(0, "h.py", None, (1, "default"), id="so is TorchServe's form"),
        pytest.param(8, "h.py", BUILT_IN, (8, "default for built-in handlers"), id="a subclass of one: the same"),
        pytest.param(0, "h.py", BUILT_IN, (1, "default"), id="in an archive, too"),
        pytest.param(
            8, "h.py", Declared([Input("data", "image")], False, built_in=True), (1, "default"),
            id="but for one whose steps were written for batches of one"),
        pytest.param(8, "h.py", None, (1, "default"), id="a handler of TorchServe's form keeps one"),
        pytest.param(8, "image_classifier", None, (8, "default for built-in handlers"), id="built in: the fallback"),
        pytest.param(0, "h.py", declared(), (32, "default for typed handlers"), id="typed: the signature decides"),
        pytest.param(4, "h.py", declared(), (32, "default for typed handlers"), id="whatever the client sends"),
        pytest.param(
            0, "h.py", declared(batches=False, waits=True), (32, "default for coroutines"), id="a coroutine: 32 wait"),
        pytest.param(
            0, "h.py", declared(waits=True), (32, "default for typed handlers"), id="one that takes lists is one call"),
        pytest.param(
            8, "h.py", declared(batch_size=32), (32, "the handler's declaration"), id="its own size wins"),
        pytest.param(
            8, "h.py", declared(batches=False), (1, "default for handlers of single values"), id="no lists, no batch"),
        pytest.param(
            8, "h.py", declared(batches=False, batch_size=4), (4, "the handler's declaration"),
            id="unless it names a size"),
        pytest.param(
            8, "h.py", declared(batch_size=2**50), (10**9, "the handler's declaration"), id="but no absurd one"),
    ],
)  # fmt: skip
def test_default_batch_size(fallback: int, handler: str, says: Declared | None, expected: tuple[int, str]) -> None:
    assert default_batch_size(fallback, handler, says) == expected


def in_force(model: ModelVersion) -> tuple[int, str]:
    return model.settings.batch_size, model.settings.origins["batch_size"]


async def serve(bench: StubDaemon, config: bytes = b"", **overrides: Any) -> ModelVersion:
    write_files(bench.store / "m", model_files(configFile="c.yaml") | {"c.yaml": config})
    values = {"workers": 1, "fallback_batch_size": 8} | overrides
    return await bench.registrar.register(Registration(url="m", overrides=Overrides(**values)))


async def test_a_typed_handler_gets_its_size_when_the_first_worker_is_ready(bench: StubDaemon) -> None:
    bench.engine.declared = declared()

    model = await serve(bench, workers=2)

    assert in_force(model) == (32, "default for typed handlers") and model.settings.policy == "auto"
    assert [worker.spec.batch_size for worker in bench.engine.workers] == [32, 32]
    assert model.traffic.batch_size == 32


async def test_more_than_eight_are_a_batch_once_they_pay_or_somebody_says_so(
    bench: StubDaemon,
) -> None:
    bench.engine.declared = declared()

    model = await serve(bench)

    assert model.traffic.most == 8
    change_settings(model, {"max_delay": 0.2})
    assert model.traffic.most == 8
    change_settings(model, {"batch_size": 32})
    assert model.traffic.most == 32


async def test_its_first_batch_is_as_large_as_that(bench: StubDaemon) -> None:
    bench.engine.declared = declared(batch_size=3)
    model = await serve(bench, policy="greedy")

    for name in "abc":
        model.submit(bench.client.job(name))
    await until(lambda: len(bench.client.answered) == 3)

    assert [len(batch.jobs) for batch in bench.engine.workers[0].batches] == [3]


async def test_a_worker_that_was_still_loading_is_told_the_size_too(bench: StubDaemon) -> None:
    bench.engine.declared, bench.engine.load_time = declared(), NEVER
    write_files(bench.store / "m", model_files())
    request = Registration(url="m", overrides=Overrides(workers=2, fallback_batch_size=8), synchronous=False)
    await bench.registrar.register(request)
    first, second = bench.engine.workers

    first._load()
    second._load()

    assert (first.spec.batch_size, second.spec.batch_size) == (32, 32)


async def test_a_later_worker_changes_nothing(bench: StubDaemon) -> None:
    bench.engine.declared = declared()
    model = await serve(bench)
    change_settings(model, {"batch_size": 4})
    bench.engine.declared = declared(batch_size=32)

    bench.engine.workers[0].answered = True
    bench.engine.workers[0].die()
    await until(lambda: len(bench.engine.workers) == 2 and model.pool.ready == 1)

    assert in_force(model) == (4, "set")


@pytest.mark.parametrize(
    ("config", "overrides", "expected"),
    [
        pytest.param(b"", {"batch_size": 1}, (1, "register"), id="of the registration"),
        pytest.param(b"batchSize: 2", {}, (2, "model-config.yaml"), id="of the archive"),
    ],
)
async def test_a_size_that_somebody_names_wins(
    config: bytes, overrides: dict[str, Any], expected: tuple[int, str], bench: StubDaemon
) -> None:
    bench.engine.declared = declared(batch_size=32)

    assert in_force(await serve(bench, config, **overrides)) == expected


async def test_one_of_the_models_block_wins_too(tmp_path: Path) -> None:
    (tmp_path / "config.properties").write_text('models={"m": {"1.0": {"batchSize": 3}}}\n')
    bench = StubDaemon(tmp_path, ts_config=str(tmp_path / "config.properties"))
    bench.engine.declared = declared(batch_size=32)

    assert in_force(await serve(bench)) == (3, "the models block of config.properties")


async def test_a_built_in_handler_has_its_size_before_a_worker_loads(bench: StubDaemon) -> None:
    write_files(bench.store / "m", model_files(handler="image_classifier"))
    request = Registration(url="m", overrides=Overrides(fallback_batch_size=8))

    model = await bench.registrar.register(request)

    assert in_force(model) == (8, "default for built-in handlers")


async def test_in_an_archive_and_over_torchserves_api_the_signature_decides_too(bench: StubDaemon) -> None:
    bench.engine.declared = declared()

    assert in_force(await serve(bench, fallback_batch_size=None)) == (32, "default for typed handlers")


async def test_after_a_restart_the_first_load_has_it_and_the_declaration_is_known(
    tmp_path: Path, bench: StubDaemon
) -> None:
    bench.engine.declared, bench.engine.notes = declared(), ["a note"]
    await serve(bench)

    again = StubDaemon(tmp_path)
    again.engine.load_time = NEVER
    await again.start()

    model = again.registry.find("m")
    assert in_force(model) == (32, "default for typed handlers")
    assert (model.declared, list(model.notes)) == (declared(), ["a note"])
    assert again.engine.workers[0].spec.batch_size == 32


async def test_after_a_restart_an_edited_handler_is_known_by_its_new_declaration(bench: StubDaemon) -> None:
    bench.engine.declared = declared()
    await serve(bench)

    again = await bench.restart()
    again.engine.declared = None
    await until(lambda: again.registry.find("m").pool.ready == 1)

    model = again.registry.find("m")
    assert (model.declared, in_force(model)) == (None, (1, "default"))


async def test_a_replacement_keeps_the_fallback_and_not_the_size(bench: StubDaemon) -> None:
    bench.engine.declared = declared()
    await serve(bench)
    bench.engine.declared = declared(batch_size=16)

    new = await replace(bench, other(bench))

    assert in_force(new) == (16, "the handler's declaration")
    assert new.before is not None and new.before.settings.batch_size == 32


async def test_a_size_that_was_set_is_kept_by_a_replacement_whatever_the_handler_declares(bench: StubDaemon) -> None:
    bench.engine.declared = declared()
    change_settings(await serve(bench), {"batch_size": 4})
    bench.engine.declared = declared(batch_size=16)

    assert in_force(await replace(bench, other(bench))) == (4, "set")


async def test_while_a_replacement_loads_the_old_one_keeps_its_size(bench: StubDaemon) -> None:
    bench.engine.declared = declared()
    old = await serve(bench)
    bench.engine.declared, bench.engine.load_time = declared(batch_size=16), NEVER

    loading = await replace(bench, other(bench), synchronous=False)
    assert in_force(old)[0] == 32
    ready(bench)
    await until(lambda: bench.registry.find("m") is loading)

    assert in_force(bench.registry.find("m"))[0] == 16 and in_force(old)[0] == 32


@pytest.mark.parametrize("asked", [{}, {"batch_size": 16}])
async def test_a_batch_is_no_larger_than_the_models_file_takes(bench: StubDaemon, asked: dict[str, Any]) -> None:
    bench.engine.declared, bench.engine.report = declared(), Loaded(0.0, own_handle=False, most_rows=4)

    model = await serve(bench, **asked)
    change_settings(model, {"max_delay": 0.5})

    assert in_force(model) == (4, "all that the model's file takes")
    assert model.traffic.batch_size == 4
    assert model.request.overrides.batch_size == asked.get("batch_size")  # for a file that takes more


async def test_a_smaller_batch_is_not_made_larger(bench: StubDaemon) -> None:
    bench.engine.report = Loaded(0.0, own_handle=False, most_rows=4)

    model = await serve(bench, batch_size=2)

    assert model.settings.batch_size == 2


async def test_to_set_a_batch_that_the_models_file_does_not_take_is_refused(bench: StubDaemon) -> None:
    bench.engine.report = Loaded(0.0, own_handle=False, most_rows=4)
    model = await serve(bench)

    with pytest.raises(BadRequest, match="is to be 5, and the model's file takes at most 4 rows at a time"):
        change_settings(model, {"batch_size": 5})
    change_settings(model, {"batch_size": 3})

    assert model.settings.batch_size == 3
