"""A built-in handler over the protocol, through a real daemon and worker."""

import json
from base64 import b64encode
from pathlib import Path

import numpy as np
import torch

from tests.e2e.served import Served
from tests.e2e.test_models import image, names, network, pack, top
from tsctl import Audio
from tsctl.handlers.requests.audio import to_wav

__all__ = ["names"]  # a fixture


def test_a_built_in_handler_takes_an_image_as_a_tensor(shared: Served, tmp_path: Path, names: Path) -> None:
    torch.jit.script(network()).save(str(tmp_path / "model.pt"))
    shared.tsctl("register", pack(shared, "tensors", names, serialized_file=tmp_path / "model.pt"))
    picture = image("green")
    in_json = {"inputs": [{"name": "data", "datatype": "BYTES", "shape": [1], "data": [b64encode(picture).decode()]}]}

    metadata = json.loads(shared.ask("/v2/models/tensors", method="GET").body)
    answer = shared.ask("/v2/models/tensors/infer", json.dumps(in_json).encode())
    plain = shared.ask("/v2/models/tensors/infer", picture)

    assert [each["name"] for each in (*metadata["inputs"], *metadata["outputs"])] == ["data", "output"]
    (output,) = json.loads(answer.body)["outputs"]
    assert (output["name"], output["datatype"], output["shape"]) == ("output", "BYTES", [1])
    assert top(output["data"][0].encode()) == top(plain.body) == "green"


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
