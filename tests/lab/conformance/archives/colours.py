"""A model file: tells six classes of images by their mean colour."""

import torch
from torch import nn


class Colours(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        weights = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0], [0, 0.5, 0.5], [-1, -1, -1]]
        self.weights = nn.Parameter(torch.tensor(weights, dtype=torch.float32))

    def forward(self, images):
        return images.mean((2, 3)) @ self.weights.T
