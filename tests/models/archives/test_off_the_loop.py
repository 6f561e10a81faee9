"""Texts that an archive brings are parsed in a thread: a registration holds up nobody, whatever they are."""

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.kit.archives import model_files, write_files, write_mar
from tests.kit.daemon import StubDaemon
from tsctl.daemon.models import build

PARSERS = ("bare_manifest", "read_manifest", "read_yaml")


def beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the parsers that have run, each checked to run beside the loop's thread."""
    loop = threading.current_thread()
    ran: list[str] = []

    def beside(name: str) -> Any:
        parse = getattr(build, name)

        def checked(*given: Any, **named: Any) -> Any:
            assert threading.current_thread() is not loop, f"{name} runs on the loop"
            ran.append(name)
            return parse(*given, **named)

        return checked

    for name in PARSERS:
        monkeypatch.setattr(build, name, beside(name))
    return ran


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return beside_the_loop(monkeypatch)


FILES = model_files(configFile="c.yaml") | {"c.yaml": b"batchSize: 8"}


async def test_of_a_registration(bench: StubDaemon, parsed: list[str]) -> None:
    write_mar(bench.store / "m.mar", FILES)

    model = await bench.register("m.mar")
    await bench.registrar.renew(model, "again")

    assert parsed == list(PARSERS) and bench.registry.find("m").settings.batch_size == 8
    write_files(bench.store / "folder", FILES)  # served in place
    await bench.register("folder", model_name="other")
    assert parsed == [*PARSERS] * 2


async def test_of_a_list(tmp_path: Path, parsed: list[str]) -> None:
    bench = StubDaemon(tmp_path, models="m.mar")
    write_mar(bench.store / "m.mar", FILES)

    await bench.start()

    assert parsed == list(PARSERS) and bench.names == ["m/1.0"]


async def test_of_a_version_that_is_restored_while_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: StubDaemon
) -> None:
    write_mar(bench.store / "m.mar", FILES)
    first = await bench.register("m.mar")
    assert first.source.unpacked is not None
    first.source.unpacked.rename(tmp_path / "lost")
    parsed = beside_the_loop(monkeypatch)

    again = await bench.restart()

    assert parsed and again.names == ["m/1.0"]
