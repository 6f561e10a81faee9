"""A model that is at work for `rowMs` milliseconds a row and `batchMs` a batch, as `model-config.yaml` says."""

import time
from typing import Any


class Busy:
    def initialize(self, context: Any) -> None:
        config = context.model_yaml_config
        self._row, self._batch = config["rowMs"] / 1000, config["batchMs"] / 1000

    def handle(self, data: list[dict[str, bytes]], context: Any) -> list[bytes]:
        until = time.perf_counter() + self._batch + self._row * len(data)
        while time.perf_counter() < until:
            pass
        return [b"done"] * len(data)
