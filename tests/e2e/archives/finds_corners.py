"""Detects the same two boxes in each image, of which one is sure enough."""

import torch


class FindsCorners(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("boxes", torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]))
        self.register_buffer("labels", torch.tensor([1, 2]))
        self.register_buffer("scores", torch.tensor([0.75, 0.25]))

    def forward(self, images):
        return [{name: each.clone() for name, each in self.named_buffers()} for _ in images]
