"""`fast_images`: a handler reads images as bytes (support/pixels.py), on all of its worker's threads.

On a GPU, processes without CUDA read them (support/readers.py), and bytes cross the bus (`Staging`).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from PIL import Image

from tsctl.handlers.builtin.base import payload_of
from tsctl.handlers.builtin.support.decoders import Decoders
from tsctl.handlers.builtin.support.pixels import (
    Admit,
    Staging,
    factors,
    normalised,
    once,
    pixels_of,
    plain_pixels,
    prepare,
    prepares,
    usual,
)
from tsctl.handlers.builtin.support.readers import Readers
from tsctl.handlers.requests.images import decode_image
from tsctl.handlers.requests.preparation import IMAGENET, Preparation
from tsctl.handlers.sdk.gpu import device_of


def use(handler: Any) -> bool:
    """Switch a handler to the fast path, if it prepares images as our `image_classifier` does.

    Returns:
        Whether the handler was switched; a handler with its own transforms keeps them.
    """
    from tsctl.handlers.builtin.vision import VisionHandler

    if not is_usual(handler):
        return False
    how: Preparation = handler.preparation

    def process(image: Image.Image) -> torch.Tensor:
        if image.mode != "RGB" or "transparency" in image.info:
            return usual(how)(image)
        return prepare(image, how)

    vars(process)["how"] = how
    handler.image_processing = process
    if not decodes_as_usual(handler):  # a user's own may not be thread-safe
        return True
    handler.spread = Decoders().map
    handler.read_image = partial(_read, handler)
    device = device_of(handler)
    if device.type == "cuda" and type(handler).preprocess is VisionHandler.preprocess:
        handler.read_image = lambda encoded, admit: pixels_of(encoded, admit, handler.least_side, how)
        handler.join = Staging(device, how)
        if handler.readers is not None:
            handler.spread = partial(_spread, handler, handler.readers)
    return True


def _spread(handler: Any, readers: Readers, decode: Callable[[Any], Any], rows: Sequence[Any]) -> Iterable[Any]:
    """Map `decode` over rows, but let the readers have those that are files."""
    payloads = [payload_of(row) for row in rows]
    files = [index for index, each in enumerate(payloads) if isinstance(each, (bytes, bytearray))]
    made: list[Any] = [None] * len(rows)
    for index, outcome in zip(files, readers.read([payloads[each] for each in files], handler.least_side), strict=True):
        made[index] = outcome
    return [decode(row) if each is None else each for row, each in zip(rows, made, strict=True)]


def is_usual(handler: Any) -> bool:
    """Return whether a handler prepares images as our `image_classifier` does, in whichever way."""
    how = getattr(handler, "preparation", None)
    return isinstance(how, Preparation) and prepares(getattr(handler, "image_processing", None), how)


def decodes_as_usual(handler: Any) -> bool:
    from tsctl.handlers.builtin.vision import VisionHandler

    return type(handler).decode_row is VisionHandler.decode_row


def stop_using(handler: Any) -> None:
    if is_usual(handler):
        handler.image_processing = usual(handler.preparation)
    for name in ("read_image", "join"):
        vars(handler).pop(name, None)
    handler.spread = map


def _read(handler: Any, encoded: bytes | bytearray, admit: Admit) -> torch.Tensor:
    """Return the row of an image file: float32, as the model takes it; raises as `pixels_of` does."""
    admit = once(admit)
    how: Preparation = handler.preparation
    pixels = plain_pixels(encoded, admit, handler.least_side, how)
    if pixels is not None:
        return normalised(pixels, *factors(how))
    image = decode_image(encoded, least_side=handler.least_side, admit=admit)
    tensor: torch.Tensor = handler.image_processing(image)
    return tensor


def pixel_drift(plain: torch.Tensor, fast: torch.Tensor, how: Preparation = IMAGENET) -> float:
    """Return the largest difference of two normalised images or batches of them, in the pixels' range of 0 to 1.

    Args:
        plain: float32, shape (…, 3, height, width).
        fast: the same shape, else the difference is infinite.
    """
    if plain.shape != fast.shape:
        return float("inf")
    return ((plain - fast).abs() * torch.tensor(how.std, device=plain.device).view(3, 1, 1)).max().item()
