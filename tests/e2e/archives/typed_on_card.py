"""A typed handler whose answers are rows of a tensor on its GPU."""

import torch


class TypedOnCard:
    batch_size = 4

    def load(self, device):
        self.device = device

    def predict(self, numbers: list[torch.Tensor]) -> list[dict]:
        batch = torch.stack(numbers).pin_memory()
        return [{"row": row} for row in batch.to(self.device, non_blocking=True)]
