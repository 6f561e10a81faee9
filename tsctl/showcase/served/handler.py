"""The handler of `tsctl demo`: a recurrent network that reads the 64 pixels of a handwritten digit one after the other.

A recurrent network shows best what batching is for: its steps cannot run at the same time, and a step costs about as
much for sixteen digits as for one. The weights are small enough to be shipped.
"""

from typing import Any

import torch
from torch import nn

PIXELS = 64  # bytes of a request, row by row, each from 0 to 16
WHITE = 16
HIDDEN = 64


class PixelReader(nn.Module):
    """float32 (rows, 64) in [0, 1] → logits (rows, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.reader = nn.GRU(1, HIDDEN, batch_first=True)
        self.digits = nn.Linear(HIDDEN, 10)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        states, _ = self.reader(pixels.unsqueeze(-1))
        logits: torch.Tensor = self.digits(states[:, -1])
        return logits


class DigitReader:
    """Answers each request with the digit, and how probable the network finds that."""

    def initialize(self, context: Any) -> None:
        self.model = PixelReader().eval()
        weights = torch.load(context.system_properties["model_dir"] + "/weights.pt", weights_only=True)
        self.model.load_state_dict({name: weight.float() for name, weight in weights.items()})

    def handle(self, data: list[dict[str, Any]], context: Any) -> list[dict[str, Any]]:  # noqa: ARG002 - the signature is given
        # Each step is too small to be shared: on two busy cores a batch of 16 takes two threads 11.2 ms, one 1.5 ms.
        # Here and not in `initialize`, as the daemon shares the cores out anew when a worker is ready.
        torch.set_num_threads(1)
        pixels = torch.frombuffer(bytearray().join(row["body"] for row in data), dtype=torch.uint8)
        with torch.inference_mode():
            logits = self.model(pixels.view(len(data), PIXELS).float() / WHITE)
            best = logits.softmax(1).max(1)
        return [
            {"digit": digit, "probability": round(probability, 4)}
            for digit, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
