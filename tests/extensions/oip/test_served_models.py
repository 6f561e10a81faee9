"""A built-in handler over the protocol, through a real daemon and worker."""

import json
from base64 import b64encode
from pathlib import Path

import torch

from tests.e2e.served import Served
from tests.e2e.test_models import image, names, network, pack, top

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
