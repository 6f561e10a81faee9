"""Inputs to check optimisations on: the archive's warm-up samples, else a synthetic one from the handler."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from tsctl.handlers import wire
from tsctl.handlers.optimize.trees import map_tensors
from tsctl.handlers.requests.rows import decode_rows
from tsctl.handlers.requests.sample import SampleRequest
from tsctl.handlers.sdk.context import decodes

ENOUGH = 32  # inputs; with as many samples, none is changed
GAINS = (1.0, 0.8, 1.2, 0.9)
NOISE = 0.1  # of the standard deviation


def varied(samples: Sequence[Callable[[], Any]]) -> Iterator[Any]:
    """Yield the input of each sample, then their variants, up to `ENOUGH` inputs in all.

    Args:
        samples: each makes an input for the model: a tensor, or mappings and sequences of tensors.
    """
    for number in range(max(1, -(-ENOUGH // len(samples)))):
        for make in samples[: ENOUGH - number * len(samples)] if number else samples:
            yield map_tensors(make(), partial(variant, number))


def variant(number: int, tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's variant: brighter or darker, with noise, and an image mirrored; 0 is the tensor itself.

    Whole numbers have no variants.
    """
    if number == 0 or not tensor.is_floating_point() or not tensor.numel():
        return tensor
    changed = tensor * GAINS[number % len(GAINS)]
    if tensor.dim() >= 4 and number // len(GAINS) % 2:
        changed = changed.flip(-1)
    noise = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(number))
    return changed + noise.to(tensor) * (tensor.std(correction=0) * NOISE)


CHECKED_ROWS = 2  # enough to detect rows that leak into each other


def archive_rows(samples: Sequence[SampleRequest]) -> list[dict[str, Any]]:
    """Return the archive's warm-up samples as rows for `preprocess`."""
    rows = [wire.Row("optimize", [], [("body", each.content_type, each.body)]) for each in samples]
    return decode_rows(rows, decode=decodes())


def digest_of(samples: Sequence[SampleRequest]) -> str:
    """Return a SHA-256 of the samples' contents; empty for none."""
    digest = hashlib.sha256()
    for each in samples:
        digest.update(f"{each.content_type} {len(each.body)}\n".encode() + each.body)
    return digest.hexdigest() if samples else ""


def made_up_rows(handler: Any) -> list[dict[str, Any]]:
    """Return the row that a handler makes up, if it can.

    For the case that the handler fails on a sample: for example, `preprocess` never sees one in a service envelope.
    """
    made_up = getattr(handler, "example", None)
    return [] if made_up is None else [{"body": made_up()}]
