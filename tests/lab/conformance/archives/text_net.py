"""A model file: two classes of text, from the known weights of a bag of words."""

import torch
from torch import nn


class TextNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag(8, 2)
        with torch.no_grad():
            self.embedding.weight.copy_(torch.arange(16, dtype=torch.float32).reshape(8, 2).sin())

    def forward(self, tokens, offsets):
        return self.embedding(tokens, offsets) * torch.tensor([1.0, -2.0])
