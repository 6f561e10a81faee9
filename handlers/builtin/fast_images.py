"""Fast preprocessing of an image file to ImageNet's 224 × 224: resize bytes, and normalise only the crop.

torchvision's transforms resize with Pillow, divide by 255, subtract and divide again, each in a separate pass. Here a
tensor of bytes is resized with the same filter (bilinear, antialiased), and one multiplication and one addition do the
rest on the crop. Each value is the same to 1/255 of the pixels' range, the rounding of the resize. Measured on a
500 × 375 JPEG, one thread: decode 0.8 ms, then 0.7 instead of 1.95 ms (at d82013d7).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import interpolate

from tsctl.handlers.builtin.support.decoders import Decoders

RESIZED, CROP = 256, 224  # pixels: the shorter side, and the square crop
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_SCALE = torch.tensor([1 / (255 * each) for each in STD]).view(3, 1, 1)
_SHIFT = torch.tensor([-mean / std for mean, std in zip(MEAN, STD, strict=True)]).view(3, 1, 1)


def use(handler: Any) -> bool:
    """Switch a handler to the fast path, if it prepares images as our `image_classifier` does.

    Returns:
        Whether the handler was switched; a handler with its own transforms keeps them.
    """
    from tsctl.handlers.builtin.image_classifier import ImageClassifier, middle

    usual: Callable[[Image.Image], torch.Tensor] = ImageClassifier.image_processing
    if not is_usual(handler):
        return False

    def process(image: Image.Image) -> torch.Tensor:
        if image.mode != "RGB" or "transparency" in image.info:
            tensor: torch.Tensor = usual(image)
            return tensor
        return prepare(middle(image))

    handler.image_processing = process
    if decodes_as_usual(handler):  # a user's own may not be thread-safe
        handler.spread = Decoders().map
    return True


def is_usual(handler: Any) -> bool:
    """Return whether a handler prepares images as our `image_classifier` does, in whichever way."""
    from tsctl.handlers.builtin.image_classifier import ImageClassifier

    processing = getattr(handler, "image_processing", None)
    return processing is ImageClassifier.image_processing or getattr(processing, "__module__", "") == __name__


def decodes_as_usual(handler: Any) -> bool:
    from tsctl.handlers.builtin.vision import VisionHandler

    return type(handler).decode_row is VisionHandler.decode_row


def stop_using(handler: Any) -> None:
    vars(handler).pop("image_processing", None)
    handler.spread = map


def prepare(image: Image.Image) -> torch.Tensor:
    """Resize, crop to the middle and normalise.

    Args:
        image: RGB.

    Returns:
        float32, shape (3, 224, 224), normalised as ImageNet's models expect: about -2.1 to 2.6.
    """
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)  # uint8; the memory layout stays height, width, channel
    height, width = _resized(image.height, image.width)
    if (height, width) != (image.height, image.width):
        pixels = interpolate(pixels[None], (height, width), mode="bilinear", antialias=True)[0]
    top, left = round((height - CROP) / 2), round((width - CROP) / 2)
    square = pixels[:, top : top + CROP, left : left + CROP]
    return square.to(torch.float32).mul_(_SCALE).add_(_SHIFT)


def _resized(height: int, width: int) -> tuple[int, int]:
    """Return the (height, width) that torchvision's `Resize(256)` produces: the longer side is rounded down."""
    if height <= width:
        return RESIZED, int(RESIZED * width / height)
    return int(RESIZED * height / width), RESIZED


def pixel_drift(usual: torch.Tensor, fast: torch.Tensor) -> float:
    """Return the largest difference of two normalised images or batches of them, in the pixels' range of 0 to 1.

    Args:
        usual: float32, shape (…, 3, height, width).
        fast: the same shape, else the difference is infinite.
    """
    if usual.shape != fast.shape:
        return float("inf")
    return ((usual - fast).abs() * torch.tensor(STD, device=usual.device).view(3, 1, 1)).max().item()
