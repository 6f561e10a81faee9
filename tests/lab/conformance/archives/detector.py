"""A model file: finds two boxes in each image, as torchvision's detectors answer, whatever it shows."""

import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, images):
        return [
            {
                "boxes": torch.tensor([[1.0, 2.0, 30.5, 40.25], [5.0, 6.0, 7.0, 8.0], [0.0, 0.0, 9.0, 9.0]]),
                "labels": torch.tensor([2, 0, 1]),
                "scores": torch.stack([image.mean() * self.scale[0], torch.tensor(0.9), torch.tensor(0.1)]),
            }
            for image in images
        ]
