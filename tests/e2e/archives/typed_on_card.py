"""A typed handler that finds its tensors on its GPU, as its `device` says, and answers with them."""

import torch


class TypedOnCard:
    batch_size = 4

    def load(self, device):
        self.device = device

    def predict(self, numbers: list[torch.Tensor]) -> list[dict]:
        return [{"row": row} for row in numbers]
