"""A built-in handler over the protocol, through a real daemon and worker."""

import io
import json
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.e2e.served import ARCHIVES, Served
from tsctl import Audio
from tsctl.daemon.marfile import Packing, write_archive
from tsctl.handlers.requests.audio import to_wav
from tsctl.handlers.sdk.loader import import_file


@pytest.mark.parametrize("file", ["model.pt", "model.pt2"])
def test_a_built_in_handler_takes_an_image_as_a_tensor(shared: Served, tmp_path: Path, file: str) -> None:
    network = import_file(ARCHIVES / "small_net.py").SmallNet().eval()
    if file == "model.pt":
        torch.jit.script(network).save(str(tmp_path / file))
    else:
        rows = torch.export.Dim("rows", min=1, max=8)
        program = torch.export.export(network, (torch.zeros(2, 3, 224, 224),), dynamic_shapes=({0: rows},))
        torch.export.save(program, tmp_path / file)
    names = tmp_path / "index_to_name.json"
    names.write_text(json.dumps({0: "red", 1: "green", 2: "blue"}))
    packing = Packing(
        model_name="tensors", version="1.0", handler="image_classifier", serialized_file=tmp_path / file,
        extra_files=str(names),
    )  # fmt: skip
    shared.tsctl("register", write_archive(packing, shared.store, force=True).name)
    buffer = io.BytesIO()
    Image.new("RGB", (32, 24), "green").save(buffer, "PNG")
    picture = buffer.getvalue()
    in_json = {"inputs": [{"name": "data", "datatype": "BYTES", "shape": [1], "data": [b64encode(picture).decode()]}]}

    metadata = json.loads(shared.ask("/v2/models/tensors", method="GET").body)
    answer = shared.ask("/v2/models/tensors/infer", json.dumps(in_json).encode())
    plain = shared.ask("/v2/models/tensors/infer", picture)
    shared.tsctl("unregister", "tensors")

    assert [each["name"] for each in (*metadata["inputs"], *metadata["outputs"])] == ["data", "output"]
    (output,) = json.loads(answer.body)["outputs"]
    assert (output["name"], output["datatype"], output["shape"]) == ("output", "BYTES", [1])
    assert {next(iter(json.loads(told))) for told in (output["data"][0], plain.body)} == {"green"}


def test_a_typed_handler_takes_a_sound_as_bytes_or_in_base64(shared: Served) -> None:
    shared.register("hears")
    sound = to_wav(Audio(np.full((1, 50), 0.5, np.float32), 8000))
    tensor = {"name": "sounds", "datatype": "BYTES", "shape": [1]}
    element = len(sound).to_bytes(4, "little") + sound
    head = json.dumps({"inputs": [tensor | {"parameters": {"binary_data_size": len(element)}}]}).encode()
    written = json.dumps({"inputs": [tensor | {"data": [b64encode(sound).decode()]}]}).encode()

    answers = [
        shared.ask("/v2/models/hears/infer", written),
        shared.ask("/v2/models/hears/infer", head + element, Inference_Header_Content_Length=str(len(head))),
    ]
    metadata = json.loads(shared.ask("/v2/models/hears", method="GET").body)

    assert [each["datatype"] for each in metadata["inputs"]] == ["BYTES"]
    for answer in answers:
        (output,) = json.loads(answer.body)["outputs"]
        assert json.loads(output["data"][0])["samples"] == 50
