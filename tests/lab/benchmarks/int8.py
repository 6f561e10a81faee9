"""The accuracy of `int8` on a network that has learned something: `python -m tests.lab.benchmarks.int8`.

No weights are downloaded: a ResNet-18 learns to tell noisy gratings apart by direction and frequency for a minute.
It is a task made up for this, whose numbers say that the arithmetic is sound, and nothing about other models.
Then the network runs in float32 and on integers, calibrated with few or many samples, on images that it has not seen:
its accuracy, and how often both choose the same class.
"""

import argparse
import copy
import sys
import time
from collections.abc import Sequence
from functools import partial

import torch
import torchvision
from torch import nn
from torch.nn import functional

from handlers.optimize.int8.model import Int8
from handlers.optimize.trials.agreement import agreement
from handlers.optimize.trials.drift import drift
from handlers.optimize.trials.variants import varied

DIRECTIONS, FREQUENCIES, SIDE, NOISE = 8, 3, 32, 4.0  # so much noise that a network errs in one image of ten
TESTED = 2000
SAMPLES = (1, 8, 32, 128)


def examples(number: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images of shape (number, 3, SIDE, SIDE), and the class of each."""
    generator = torch.Generator().manual_seed(seed)
    classes = torch.randint(DIRECTIONS * FREQUENCIES, (number,), generator=generator)
    angles = (classes % DIRECTIONS) * (torch.pi / DIRECTIONS)
    pitches = 0.4 * 1.25 ** (classes // DIRECTIONS)
    down, right = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    paths = torch.cos(angles)[:, None, None] * down + torch.sin(angles)[:, None, None] * right
    phases = torch.rand(number, generator=generator) * 2 * torch.pi
    gratings = torch.sin(paths * pitches[:, None, None] + phases[:, None, None])[:, None]
    noise = torch.randn((number, 3, SIDE, SIDE), generator=generator)
    return gratings + NOISE * noise, classes


def trained(steps: int) -> nn.Module:
    torch.manual_seed(0)
    model: nn.Module = torchvision.models.resnet18(num_classes=DIRECTIONS * FREQUENCIES).to(
        memory_format=torch.channels_last
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    for step in range(steps):
        images, classes = examples(64, step)
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images.to(memory_format=torch.channels_last)), classes)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.2f}", file=sys.stderr)
    model.eval()
    return model


@torch.inference_mode()
def compare(model: nn.Module) -> None:
    """Print a row for each number of samples."""
    batches = [examples(50, 10_000 + number) for number in range(TESTED // 50)]
    classes = torch.cat([each for _, each in batches])
    plain = [model(images) for images, _ in batches]
    print("| calibrated with | accuracy | best class kept | drift |")
    print("|---|---|---|---|")
    print(f"| float32 | {right(plain, classes):.1%} | | |")
    for samples in SAMPLES:
        int8 = Int8(copy.deepcopy(model))
        images, _ = examples(samples, 20_000)
        inputs = list(varied([partial(images.__getitem__, slice(row, row + 1)) for row in range(samples)]))
        int8.convert(int8.calibrate(partial(run_all, int8, inputs)))
        other = [int8(images) for images, _ in batches]
        name = f"{samples} sample{'s' * (samples > 1)}" + ", and variants" * (len(inputs) > samples)
        kept = agreement(plain, other)
        apart = max(drift(*pair) for pair in zip(plain, other, strict=True))
        print(f"| {name} | {right(other, classes):.1%} | {kept:.2%} | {apart:.0e} |", flush=True)


def run_all(model: nn.Module, inputs: Sequence[torch.Tensor]) -> None:
    for each in inputs:
        model(each)


def right(outputs: Sequence[torch.Tensor], classes: torch.Tensor) -> float:
    return (torch.cat(list(outputs)).argmax(1) == classes).double().mean().item()


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="Measure the accuracy of `int8`.")
    parser.add_argument("--steps", type=int, default=250, help="of training, 64 images each")
    given = parser.parse_args(arguments)
    began = time.perf_counter()
    model = trained(given.steps)
    print(f"trained for {time.perf_counter() - began:.0f} s", file=sys.stderr)
    compare(model)


if __name__ == "__main__":
    main(sys.argv[1:])
