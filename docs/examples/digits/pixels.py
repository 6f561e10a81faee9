"""Train the network of `tsctl demo`, which the wheel holds: a recurrent one that reads a digit pixel by pixel.

`python -m tests.lab digits` runs this; it writes weights.pt, digit.bin and about.json to
tsctl/showcase/served, in about a minute.
"""

import json
from pathlib import Path

import numpy as np
import torch
from digits import HELD_OUT, load
from torch import nn

import tsctl.showcase.served.handler as served

EPOCHS = 60
STEP = 64  # digits
RATE = 0.01
TO = Path(served.__file__).parent


def pixels_of(images: np.ndarray) -> torch.Tensor:
    """uint8 (rows, 8, 8) → uint8 (rows, 64), each from 0 to 16, as a request holds them."""
    return torch.from_numpy(np.round(images / (255 / served.WHITE)).astype(np.uint8)).flatten(1)


def train(pixels: torch.Tensor, labels: torch.Tensor) -> served.PixelReader:
    """Train on one thread: each step is too small to be shared."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = served.PixelReader()
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    steps = EPOCHS * -(-len(pixels) // STEP)
    # One cycle, and no large steps: otherwise a network over 64 steps of time does not begin to learn.
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    inputs = pixels.float() / served.WHITE
    for epoch in range(EPOCHS):
        for rows in torch.randperm(len(inputs)).split(STEP):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(network(inputs[rows]), labels[rows])
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        print(f"\repoch {epoch + 1} of {EPOCHS}", end="", flush=True)
    print()
    return network.half().float().eval()  # as the weights are shipped


if __name__ == "__main__":
    data = load()
    network = train(pixels_of(data.train_images), torch.from_numpy(data.train_labels))
    held_out = pixels_of(data.test_images)
    with torch.inference_mode():
        sure, said = network(held_out.float() / served.WHITE).softmax(1).max(1)
    right = int((said == torch.from_numpy(data.test_labels)).sum())
    weights = {name: weight.half() for name, weight in network.state_dict().items()}
    torch.save(weights, TO / "weights.pt")
    digit = bytes(held_out[sure.argmax()].tolist())
    about = {"weights": sum(map(torch.numel, weights.values())), "heldOut": HELD_OUT, "right": right}
    (TO / "digit.bin").write_bytes(digit)
    (TO / "about.json").write_text(json.dumps(about) + "\n")
    print(f"{right} of {HELD_OUT} held-out digits are right")
