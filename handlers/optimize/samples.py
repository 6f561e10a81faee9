"""Inputs to check optimisations on: the archive's warm-up sample, else a synthetic one from the handler."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from handlers import wire
from handlers.requests.rows import decode_rows
from handlers.runtime.warmup import sample_of

CHECKED_ROWS = 2  # enough to detect rows that leak into each other


def sample_rows(handler: Any, model_dir: Path, config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return rows for `preprocess`, the best first: the handler may fail on one.

    For example, `preprocess` never sees a warm-up sample in a service envelope.

    Raises:
        HandlerError: the archive names a warm-up sample that is missing.
    """
    rows: list[dict[str, Any]] = []
    sample = sample_of(model_dir, config)
    if sample is not None:
        rows += decode_rows([wire.Row("optimize", [], [("body", sample.content_type, sample.body)])])
    made_up = getattr(handler, "example", None)
    if made_up is not None:
        rows.append({"body": made_up()})
    return rows


def example_image() -> bytes:
    """Return a JPEG of 500 × 375 pixels, the same each time: smooth patches under fine noise, as in a photograph."""
    from PIL import Image

    generator = torch.Generator().manual_seed(7)
    patches = torch.randint(0, 256, (12, 16, 3), generator=generator, dtype=torch.uint8)
    image = Image.fromarray(patches.numpy()).resize((500, 375), Image.Resampling.BICUBIC)
    noise = torch.randint(0, 256, (375, 500, 3), generator=generator, dtype=torch.uint8)
    image = Image.blend(image, Image.fromarray(noise.numpy()), 0.15)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()
