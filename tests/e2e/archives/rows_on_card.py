"""Answers with rows of a tensor on its GPU, as a handler does that leaves them to the server."""

import torch


class RowsOnCard:
    def initialize(self, context):
        self.device = f"cuda:{context.system_properties['gpu_id']}"

    def handle(self, data, context):
        batch = torch.tensor([row["body"] for row in data], dtype=torch.float32).pin_memory()
        return [{"row": row} for row in batch.to(self.device, non_blocking=True)]
