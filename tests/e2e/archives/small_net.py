"""A model file: a network small enough to load at once. It tells images by their mean colour."""

import torch
from torch import nn


class SmallNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, images):
        return images.mean((2, 3)) * self.scale
