"""A typed handler: the score of a flower's four measures."""

import torch

torch.manual_seed(1)
model = torch.nn.Linear(4, 1)


def predict(flowers: list[torch.Tensor]) -> list[dict]:
    with torch.inference_mode():
        scores = model(torch.stack(flowers).float()).squeeze(1)
    return [{"score": score} for score in scores.tolist()]
