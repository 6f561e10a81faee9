"""The network: the mean of the embeddings of a text's words and pairs of words, and one linear layer."""

import torch
from torch import nn

TOKENS = 4096
CLASSES = 4


class Topics(nn.Module):
    """int64 numbers of tokens (tokens of all rows,), offsets (rows,) → float32 logits (rows, CLASSES)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag(TOKENS, 32)
        self.layer = nn.Linear(32, CLASSES)

    def forward(self, numbers: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layer(self.embedding(numbers, offsets))
        return logits
