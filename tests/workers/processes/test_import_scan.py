"""The imports of a model's files are those of its workers."""

from pathlib import Path

import pytest

from tests.kit.archives import write_files
from tsctl.daemon.workers.processes.import_scan import Needs, fingerprint, is_ours, needs_of
from tsctl.handlers import wire

NOTHING, TORCH, VISION = Needs(False, False), Needs(True, False), Needs(True, True)


@pytest.mark.parametrize(
    ("handler", "files", "needs"),
    [
        pytest.param("base_handler", {}, TORCH, id="a built-in handler"),
        pytest.param("image_classifier", {}, VISION, id="one for images"),
        pytest.param("image_segmenter:handle", {}, VISION, id="with a function's name"),
        pytest.param("text_classifier", {"model.py": b"from torchvision.models import resnet18"}, VISION, id="model"),
        pytest.param("mine.py", {"mine.py": b"import json"}, NOTHING, id="a handler without torch"),
        pytest.param("mine.py", {"mine.py": b"import torch"}, TORCH, id="with torch"),
        pytest.param("mine.py", {"mine.py": b"import other", "other.py": b"from torch import nn"}, TORCH, id="beside"),
        pytest.param("mine.py", {"mine.py": b"# like a torchlight\nimport pytorch_thing"}, NOTHING, id="in a word"),
        pytest.param(
            "mine.py", {"mine.py": b"from ts.torch_handler.base_handler import BaseHandler"}, TORCH, id="of ts"
        ),
        pytest.param(
            "mine.py", {"mine.py": b"from ts.torch_handler.image_classifier import Any"}, VISION, id="of ts for images"
        ),
        pytest.param("base_handler", {"base_handler.py": b"import json"}, NOTHING, id="a file of that name"),
    ],
)
def test_needs(handler: str, files: dict[str, bytes], needs: Needs, tmp_path: Path) -> None:
    assert needs_of(handler, write_files(tmp_path, files)) == needs


def test_a_file_of_the_archive_comes_before_a_built_in_handler(tmp_path: Path) -> None:
    assert is_ours("base_handler", tmp_path)
    assert not is_ours("mine.py", tmp_path)

    (tmp_path / "base_handler.py").touch()

    assert not is_ours("base_handler", tmp_path)


def test_a_directory_that_has_gone_mentions_nothing(tmp_path: Path) -> None:
    assert needs_of("mine.py", tmp_path / "gone") == NOTHING


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
