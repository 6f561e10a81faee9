"""The candidates: sets of optimisations to try."""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from tsctl.handlers.names import NO_OPTIMIZATION, usual_optimizations
from tsctl.handlers.requests.preparation import IMAGENET, read_preparation
from tsctl.handlers.sdk.errors import HandlerError

DEFAULT = "default"  # names the set without any name
SCALED_DECODE = "scaled_decode"
_READING = "fast_images"  # a default of handlers that prepare images as `scaled_decode` can
_ADDED = (("bf16",), ("int8",), ("compile",), ("onnxruntime",), ("bf16", "compile"))  # to the defaults


@dataclass(frozen=True, slots=True)
class OptimizationSet:
    """A set of optimisations.

    Attributes:
        names: as asked for by name: added to the handler's defaults, unless `none` is among them.
        now: the model is registered with this set.
    """

    names: tuple[str, ...]
    now: bool = False

    @property
    def text(self) -> str:
        """The set in one word: the value of `--optimize`, or `default` for no name."""
        return ",".join(self.names) or DEFAULT


def candidates(handler: str, asked: Sequence[str] | None, *, large_jpeg: bool) -> list[OptimizationSet]:
    """Return the sets to try, the plain model first; one of them is that of now.

    Args:
        handler: as in the manifest.
        asked: the set of now, None if no optimisation was asked for.
        large_jpeg: the sample is an image that `scaled_decode` has an effect on.
    """
    usual = usual_optimizations(handler)
    sets: list[tuple[str, ...]] = [(NO_OPTIMIZATION,)]
    if usual:
        sets.append(())
    if large_jpeg and _READING in usual:
        sets.append((SCALED_DECODE,))
    sets += _ADDED
    now = tuple(asked or ())
    same = [names for names in sets if _all_of(names, usual) == _all_of(now, usual)]
    if not same:
        sets.append(now)
    present = same[0] if same else now
    return [OptimizationSet(names, names == present) for names in sets]


def sets_of_trial(sets: Sequence[Sequence[str]], *, large_jpeg: bool) -> list[OptimizationSet]:
    """Return the sets of a trial that can have an effect on the sample; now are the defaults."""
    named = [tuple(names) for names in sets if large_jpeg or SCALED_DECODE not in names]
    return [OptimizationSet(names, not names) for names in named]


def _all_of(names: Sequence[str], usual: Sequence[str]) -> frozenset[str]:
    """Return what is tried for these names: with the defaults, unless `none` is among the names."""
    return frozenset(names) - {NO_OPTIMIZATION} | (frozenset() if NO_OPTIMIZATION in names else frozenset(usual))


def least_large_side(model_dir: Path, config: Mapping[str, Any]) -> float:
    """Return the pixels of the shorter side from which `scaled_decode` reads a JPEG at a half; infinite where it never
    does.

    Args:
        config: the model's model-config.yaml.
    """
    try:
        how = read_preparation(model_dir, config).how
    except HandlerError:  # of a handler that means something else by the names of these settings
        how = IMAGENET
    return math.inf if how.least_side is None else 2 * how.least_side


def is_large_jpeg(body: bytes, least_side: float) -> bool:
    """Return whether a body is a JPEG that `scaled_decode` would decode at a part of its size."""
    try:
        with Image.open(io.BytesIO(body), formats=["JPEG"]) as image:
            return min(image.size) >= least_side
    except Exception:  # noqa: BLE001 - Pillow raises many for what is none
        return False
