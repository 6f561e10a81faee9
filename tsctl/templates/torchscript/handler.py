"""A handler of a TorchScript file: the model is loaded once per worker, and runs once for a whole batch."""

from pathlib import Path

import torch


class Scorer:
    """Scores rows of four numbers."""

    def load(self) -> None:
        self.model = torch.jit.load(Path(__file__).with_name("model.pt")).eval()

    def predict(self, rows: list[list[float]]) -> list[float]:
        """Return the score of each row."""
        with torch.inference_mode():
            scores: list[float] = self.model(torch.tensor(rows)).flatten().tolist()
        return scores
