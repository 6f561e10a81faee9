"""The model of a text classifier, as torchtext's tutorial has it."""

import torch
from torch import nn


class TextClassificationModel(nn.Module):
    def __init__(self, vocab_size=6, embed_dim=2, num_class=2):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim)
        self.fc = nn.Linear(embed_dim, num_class)

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


def weights():
    """Tokens with even numbers speak for class 0, those with odd ones for class 1."""
    numbers = torch.arange(6)
    embedding = torch.stack([1.0 - numbers % 2, 1.0 * (numbers % 2)], dim=1)
    return {"embedding.weight": embedding, "fc.weight": torch.eye(2) * 4, "fc.bias": torch.zeros(2)}
