"""A small convolutional network with random weights over images of 3 × 64 × 64 bytes."""

import torch
from torch import nn


class Convolutions:
    def initialize(self, context):
        layers = [nn.Conv2d(3, 64, 3, padding=1), nn.ReLU()]
        for channels, more in ((64, 64), (64, 128), (128, 128)):  # takes longer than its way here
            layers += [nn.Conv2d(channels, more, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        self.net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 8 * 8, 10)).eval()

    @torch.inference_mode()
    def handle(self, data, context):
        images = [torch.frombuffer(row["body"], dtype=torch.uint8).reshape(3, 64, 64) for row in data]
        return self.net(torch.stack(images).float() / 255).argmax(1).tolist()
