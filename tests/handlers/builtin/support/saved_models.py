"""Models in files, and requests to them; without a package of its own, so that each test says what it needs."""

import json
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.handlers.samples import row
from tsctl.handlers import wire
from tsctl.handlers.runtime.runtime import Runtime

JSON = "application/json"


def export(
    path: Path,
    model: nn.Module,
    *inputs: torch.Tensor,
    names: list[str],
    outputs: list[str] | None = None,
    fixed: bool = False,
) -> None:
    axes = None if fixed else {name: {0: "rows"} for name in (*names, *(outputs or ()))}
    with warnings.catch_warnings():  # it is deprecated, and the fastest
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, inputs, str(path), input_names=names, output_names=outputs, dynamic_axes=axes, dynamo=False
        )


def runtime_of(files: Path, name: str) -> Runtime:
    return Runtime.load(
        wire.Load("m", "1.0", str(files), "base_handler", {"model": {"serializedFile": name}}, batch_size=4, threads=1)
    )


def ask(runtime: Runtime, *documents: Any) -> list[tuple[int, Any]]:
    rows = [row(json.dumps(each).encode(), JSON, request_id=f"r{number}") for number, each in enumerate(documents)]
    return [
        (each.status, json.loads(each.body) if each.status == 200 else bytes(each.body).decode())
        for each in runtime.run(rows)
    ]
