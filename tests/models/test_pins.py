"""A registration may pin the version and the SHA-256 of its archive; another archive is refused, and leaves nothing."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import BadRequest, InvalidModel
from daemon.models.registering.pins import sha256_pin
from tests.kit.archives import model_files, write_files
from tests.kit.daemon import StubDaemon


def digest_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


async def test_the_pinned_archive_is_served_and_the_pin_is_remembered(tmp_path: Path) -> None:
    bench = StubDaemon(tmp_path)
    url = bench.mar()
    pin = digest_of(bench.store / url)

    model = await bench.register(url, sha256=pin, model_version="1.0")

    assert model.source.unpacked is not None and model.source.unpacked.name == pin
    assert bench.remembered["m/1.0"].request.sha256 == pin


@pytest.mark.parametrize(
    ("pins", "says"),
    [
        pytest.param({"sha256": "0" * 64}, r"SHA-256 of `m-1.0.mar` is [0-9a-f]{64}; expected 0{64}", id="SHA-256"),
        pytest.param({"model_version": "2.0"}, "m-1.0.mar contains version 1.0; version 2.0 was asked", id="version"),
    ],
)
async def test_another_archive_is_refused(pins: dict[str, Any], says: str, tmp_path: Path) -> None:
    bench = StubDaemon(tmp_path)

    with pytest.raises(InvalidModel, match=says):
        await bench.register(bench.mar(), **pins)

    assert (bench.names, bench.unpacked) == ([], 0)


async def test_a_file_that_is_served_in_place_may_be_pinned_and_a_directory_may_not(tmp_path: Path) -> None:
    bench = StubDaemon(tmp_path)
    (bench.store / "handler.py").write_text("def handle(data, context):\n    return data\n")
    write_files(bench.store / "m", model_files())

    await bench.register("handler.py", sha256=digest_of(bench.store / "handler.py"), model_name="f")
    with pytest.raises(InvalidModel, match=r"SHA-256 of `handler.py` is"):
        await bench.register("handler.py", sha256="0" * 64, model_name="g")
    with pytest.raises(InvalidModel, match="a directory, which has no SHA-256"):
        await bench.register("m", sha256="0" * 64)

    assert bench.names == ["f/1.0"]


async def test_a_kept_archive_is_served_by_its_pin_only_where_any_path_may_be(tmp_path: Path) -> None:
    bench = StubDaemon(tmp_path)
    url = bench.mar()
    pin = digest_of(bench.store / url)
    await bench.register(url)

    with pytest.raises(Exception, match=r"Model not found at: gone\.mar"):  # over TCP
        await bench.register("gone.mar", sha256=pin, model_name="other")
    other = await bench.register("gone.mar", sha256=pin, model_name="other", local_paths=True)

    assert other.source.directory.name == pin and bench.unpacked == 1


@pytest.mark.parametrize("text", ["12", "g" * 64, "0" * 63 + " "])
def test_a_pin_that_is_no_sha_256_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="expected 64 hexadecimal digits, as `sha256sum FILE` prints them"):
        sha256_pin(text)


def test_a_pin_in_capitals_is_read() -> None:
    assert sha256_pin("AB" * 32) == "ab" * 32 and sha256_pin("") == ""
