"""`MockContext`: a context for users' own tests of a handler."""

import os
import uuid
from typing import Any

import torch

from tsctl.handlers.torchserve.metrics_store import MetricsStore
from tsctl.handlers.torchserve.util import get_yaml_config


class MockContext:
    """A context without requests.

    Args:
        model_pt_file, model_file: the manifest's entries; empty for none.
        gpu_id: used only if there is a GPU.
        model_yaml_config_file: a yaml file in `model_dir`.
    """

    def __init__(
        self,
        model_pt_file: str | None = "model.pt",
        model_dir: str = "ts/torch_handler/unit_tests/models/tmp",
        model_file: str | None = "model.py",
        gpu_id: str | None = "0",
        model_name: str = "mnist",
        model_yaml_config_file: str | None = None,
    ) -> None:
        entry = {"serializedFile": model_pt_file, "modelFile": model_file}
        self.manifest: dict[str, Any] = {"model": {key: value for key, value in entry.items() if value}}
        self.system_properties: dict[str, Any] = {"model_dir": model_dir}
        if torch.cuda.is_available() and gpu_id:
            self.system_properties["gpu_id"] = gpu_id
        self.explain = False
        self.metrics = MetricsStore(uuid.uuid4(), model_name)
        self.model_yaml_config: dict[str, Any] = {}
        if model_yaml_config_file:
            self.model_yaml_config = get_yaml_config(os.path.join(model_dir, model_yaml_config_file))

    def get_request_header(self, idx: int, exp: str) -> bool:
        """Return whether `explain` was set; always False for the first row, as in TorchServe."""
        return bool(idx and exp and self.explain)
