"""The imports of a model's files are those of its workers."""

import json
from pathlib import Path

from tests.kit.archives import write_files
from tests.kit.said import said_in
from tsctl.daemon.workers.processes.import_scan import Needs, fingerprint, is_ours, needs_of
from tsctl.handlers import wire


@said_in("needs.txt")
def test_needs(given: str, tmp_path: Path) -> str:
    asked = json.loads(given)
    files = {name: text.encode() for name, text in asked["files"].items()}
    return f"{needs_of(asked['handler'], write_files(tmp_path, files))}"


def test_a_file_of_the_archive_comes_before_a_built_in_handler(tmp_path: Path) -> None:
    assert is_ours("base_handler", tmp_path)
    assert not is_ours("mine.py", tmp_path)

    (tmp_path / "base_handler.py").touch()

    assert not is_ours("base_handler", tmp_path)


def test_a_directory_that_has_gone_mentions_nothing(tmp_path: Path) -> None:
    assert needs_of("mine.py", tmp_path / "gone") == Needs(False, False)


def test_a_fingerprint_is_of_the_files_and_of_what_is_to_be_loaded(tmp_path: Path) -> None:
    def taken(batch_size: int = 1) -> str:
        return fingerprint(wire.Load("m", "1.0", str(tmp_path), "base_handler", {}, batch_size, 1))

    write_files(tmp_path, {"model.py": b"x = 1"})
    before = taken()
    write_files(tmp_path, {"__pycache__/model.pyc": b"compiled"})
    assert taken() == before

    assert taken(batch_size=2) != before
    (tmp_path / "model.py").write_bytes(b"x = 22")
    assert taken() != before
