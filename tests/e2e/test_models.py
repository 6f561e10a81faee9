"""Real torch models of each kind, behind the built-in image classifier and a subclass of it."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from tests.e2e.served import ARCHIVES, Served
from tsctl.daemon.marfile import Packing, write_archive
from tsctl.handlers.sdk.loader import import_file

COLOURS = ("red", "green", "blue")


def image(colour: str, form: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (32, 24), colour).save(buffer, form)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("names") / "index_to_name.json"
    file.write_text(json.dumps(dict(enumerate(COLOURS))))
    return file


def network() -> torch.nn.Module:
    made: torch.nn.Module = import_file(ARCHIVES / "small_net.py").SmallNet()
    return made.eval()


def pack(served: Served, name: str, names: Path, **files: Any) -> str:
    packing = Packing(model_name=name, version="1.0", handler="image_classifier", extra_files=str(names), **files)
    return write_archive(packing, served.store, force=True).name


def top(body: bytes) -> str:
    return str(next(iter(json.loads(body))))


@pytest.mark.parametrize("kind", ["eager", "torchscript", "export"])
def test_each_kind_of_model_classifies_images(shared: Served, tmp_path: Path, names: Path, kind: str) -> None:
    files = {}
    if kind == "eager":
        torch.save(network().state_dict(), tmp_path / "weights.pth")
        files = {"model_file": ARCHIVES / "small_net.py", "serialized_file": tmp_path / "weights.pth"}
    elif kind == "torchscript":
        torch.jit.script(network()).save(str(tmp_path / "model.pt"))
        files = {"serialized_file": tmp_path / "model.pt"}
    else:
        rows = torch.export.Dim("rows", min=1, max=8)
        program = torch.export.export(network(), (torch.zeros(2, 3, 224, 224),), dynamic_shapes=({0: rows},))
        torch.export.save(program, tmp_path / "model.pt2")
        files = {"serialized_file": tmp_path / "model.pt2"}
    shared.tsctl(
        "register",
        pack(shared, kind, names, **files),
        "--batch-size",
        "4",
        "--max-delay",
        "60000",
        "--batching",
        "fixed",
    )

    with ThreadPoolExecutor(4) as clients:
        sent = [*COLOURS, "red"]
        answers = list(clients.map(lambda colour: shared.ask(f"/predictions/{kind}", image(colour, "JPEG")), sent))

    assert [top(answer.body) for answer in answers] == sent
    assert all(answer.headers["content-type"] == "application/json" for answer in answers)
    assert shared.describe(kind)["tsctl"]["batching"]["sizes"] == {"4": 1}
    shared.tsctl("unregister", kind)


def test_an_archive_that_contradicts_its_built_in_handler_is_no_model(
    shared: Served, tmp_path: Path, names: Path
) -> None:
    torch.jit.script(network()).save(str(tmp_path / "model.pt"))
    (tmp_path / "model-config.yaml").write_text("inputs: [{name: picture, datatype: BYTES, shape: [1]}]\n")
    files = {"serialized_file": tmp_path / "model.pt", "config_file": tmp_path / "model-config.yaml"}

    refused = shared.run("register", pack(shared, "contradicts", names, **files))

    assert refused.returncode != 0
    assert "the built-in handler takes `data`" in refused.stderr
