"""`BaseHandler`: load a model, and run `preprocess`, `inference`, `postprocess` on each batch.

Users subclass it and override a stage. Members and order are TorchServe's (ts/torch_handler/base_handler.py).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from handlers.context import Context
from handlers.defaults.labels import load_label_mapping
from handlers.defaults.modelfile import load_model
from handlers.errors import UnreadablePayload


class PreparedRow(dict[str, Any]):
    """A row as the handler sees it, with what `prepare` made of it."""

    prepared: Any


def payload_of(row: Any) -> Any:
    """The value of a row: its `data`, else its `body`."""
    if not isinstance(row, Mapping):
        return row
    value = row.get("data")
    return row.get("body") if value is None else value


class BaseHandler:
    """A handler for one model.

    Attributes:
        model: on `device`, in inference mode; None before `initialize`.
        mapping: class number as a string → name, or None.
        initialized: `initialize` has succeeded.
    """

    def __init__(self) -> None:
        self.model: Any = None
        self.mapping: dict[str, Any] | None = None
        self.device: torch.device = torch.device("cpu")
        self.initialized = False
        self.context: Context | None = None
        self.manifest: dict[str, Any] = {}
        self.map_location = "cpu"
        self.model_pt_path: str | None = None
        self.model_yaml_config: dict[str, Any] = {}
        self.explain = False
        self.target = 0

    def initialize(self, context: Context) -> None:
        """Load the model onto its device, and the class names.

        Raises:
            HandlerError: the archive holds no model that can be loaded.
        """
        properties = context.system_properties
        gpu_id = properties.get("gpu_id")
        on_gpu = torch.cuda.is_available() and gpu_id is not None
        self.map_location = "cuda" if on_gpu else "cpu"
        self.device = torch.device(f"cuda:{gpu_id}" if on_gpu else "cpu")
        self.context = context
        self.manifest = context.manifest
        self.model_yaml_config = context.model_yaml_config
        model_dir = Path(properties["model_dir"])
        serialized = self.manifest.get("model", {}).get("serializedFile")
        self.model_pt_path = str(model_dir / Path(serialized).name) if serialized else None
        self.model = load_model(model_dir, self.manifest, self.model_yaml_config, self.device)
        self.mapping = load_label_mapping(model_dir / "index_to_name.json")
        self.initialized = True

    def prepare(self, data: list[Any]) -> dict[int, UnreadablePayload]:
        """Find the rows that cannot be read, before `handle` is called with the others.

        Only asked where `handle` is this class's. A handler may replace rows by `PreparedRow`s to
        keep what reading them gave.

        Returns:
            Row → why it cannot be read.
        """
        if type(self).preprocess is not BaseHandler.preprocess:
            return {}
        unreadable = {}
        for index, row in enumerate(data):
            try:
                torch.as_tensor(payload_of(row))
            except (TypeError, ValueError, RuntimeError) as error:
                unreadable[index] = UnreadablePayload(f"The request is not an array of numbers: {error}")
        return unreadable

    def preprocess(self, data: list[Any]) -> Any:
        """Make the model's input: one tensor of all rows, shape (rows, …), on the handler's device."""
        return torch.as_tensor([payload_of(row) for row in data], device=self.device)

    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the model once on the whole batch, without recording gradients."""
        with torch.inference_mode():
            return self.model(data.to(self.device), *args, **kwargs)

    def postprocess(self, data: Any) -> list[Any]:
        """Make the answers: one item for each row."""
        result: list[Any] = data.tolist()
        return result

    def handle(self, data: list[Any], context: Context) -> list[Any]:
        """Run the three stages on a batch."""
        self.context = context
        return self.postprocess(self.inference(self.preprocess(data)))
