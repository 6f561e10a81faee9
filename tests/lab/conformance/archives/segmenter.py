"""A model file: tells red from green from blue in each quarter of an image."""

from torch import nn


class Segmenter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(2)

    def forward(self, images):
        return {"out": self.pool(images)}
