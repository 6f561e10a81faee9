"""The gain of `scaled_decode`: `python -m tests.lab.benchmarks.decoding [--rounds 7]`.

One thread of this process reads JPEGs as `image_classifier` does with `fast_images`, in turns with `scaled_decode` and
without. The images are made of noise whose amplitude falls with the frequency, as a photograph's does. Printed are
medians of the rounds, and the largest and the mean difference of a pixel in steps of 255.
"""

import argparse
import io
import time
from statistics import median

import numpy as np
import torch
from PIL import Image

from handlers.builtin import fast_images, scaled_decode
from handlers.builtin.image_classifier import ImageClassifier

SIZES = ((500, 375), (1280, 960), (1920, 1080), (4000, 3000))
FALL = 1.2  # amplitude by frequency ^ -FALL: 1 in natural images, whose details are not sharper
CONTRAST = 50  # of 255, standard deviation


def photo(width: int, height: int) -> bytes:
    """Return a JPEG like a photograph, the same each time."""
    generator = np.random.default_rng(3)
    rows, columns = np.fft.fftfreq(height)[:, None] * height, np.fft.fftfreq(width)[None] * width
    frequency = np.maximum(1.0, np.sqrt(rows**2 + columns**2))
    layers = []
    for _ in range(3):
        spectrum = generator.standard_normal((height, width)) + 1j * generator.standard_normal((height, width))
        layer = np.real(np.fft.ifft2(spectrum / frequency**FALL))
        layers.append((layer - layer.mean()) / layer.std())
    pixels = 0.6 * np.stack(layers, axis=-1) + np.mean(layers, axis=0)[..., None]  # colours follow the brightness
    image = Image.fromarray(np.clip(128 + CONTRAST * pixels, 0, 255).astype(np.uint8))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def measure(body: bytes, rounds: int) -> tuple[float, float, float, float, float]:
    """Return milliseconds as usual and scaled, the ratio, and the largest and the mean difference in steps of 255."""
    handler = ImageClassifier()
    assert fast_images.use(handler)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    read = {}
    for _ in range(rounds):
        for scaled in (False, True):
            (scaled_decode.use if scaled else scaled_decode.stop_using)(handler)
            began = time.perf_counter()
            read[scaled] = handler.decode_row({"body": body})
            seconds[scaled].append(time.perf_counter() - began)
    ratio = median(usual / scaled for usual, scaled in zip(seconds[False], seconds[True], strict=True))
    apart = (read[False] - read[True]).abs() * torch.tensor(fast_images.STD).view(3, 1, 1) * 255
    times = (median(seconds[False]) * 1000, median(seconds[True]) * 1000)
    return (*times, ratio, apart.max().item(), apart.mean().item())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.decoding")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(
        "| JPEG | kB | as usual | `scaled_decode` | gain | largest difference | mean |\n|---|---|---|---|---|---|---|"
    )
    for width, height in SIZES:
        body = photo(width, height)
        usual, scaled, ratio, most, mean = measure(body, given.rounds)
        print(
            f"| {width} × {height} | {len(body) // 1000} | {usual:.1f} ms | {scaled:.1f} ms | {ratio:.2f} × |"
            f" {most:.1f}/255 | {mean:.2f}/255 |"
        )


if __name__ == "__main__":
    main()
