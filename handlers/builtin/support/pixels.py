"""An image file's pixels, resized and cropped to a model's input, as bytes; and normalised.

torchvision's transforms resize with Pillow, divide by 255, subtract and divide again, each in a separate pass. Here a
tensor of bytes is resized with the same filter (bilinear, antialiased), and one multiplication and one addition do the
rest on the crop. Each value is the same to 1/255 of the pixels' range, the rounding of the resize. Measured on a
500 × 375 JPEG, one thread: decode 0.8 ms, then 0.7 instead of 1.95 ms (at d82013d7).

Other filters than bilinear stay Pillow's: torch's bicubic takes a fifth of the time, but its two passes are in another
order than Pillow's, and where edges overshoot, values differ by up to 30/255.

A plain JPEG is decoded by torchvision, to the same pixels as by Pillow, and almost without the interpreter's lock, for
which a worker's threads wait. Sixteen threads on 16 cores read 4 283 images/s so, and 848 by Pillow (beside an H100,
`python -m tests.lab.gpu.parts`). One thread takes 0.68 of the processor time (the same with `--device cpu --reader`).
"""

import io
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import interpolate

from tsctl.handlers.builtin.torchvision_import import transforms  # registers torchvision's operators, too
from tsctl.handlers.requests.gpu_copies import stacked
from tsctl.handlers.requests.images import (
    ORIENTATION,
    UPRIGHT,
    DecodedPart,
    as_rgb,
    decode_image,
    is_decoded_smaller,
    middle,
    middle_of,
    part_of,
)
from tsctl.handlers.requests.preparation import IMAGENET, Preparation


class Staging:
    """Makes one normalised batch of rows, whose bytes cross the bus in one pinned copy, and are normalised there.

    On an H100, 32 images of 224 × 224: float32 from pageable memory 1.48 ms, bytes from pinned memory 0.10 ms
    (`python -m tests.lab.gpu.parts`).

    Args:
        device: a GPU.
    """

    def __init__(self, device: torch.device, how: Preparation = IMAGENET) -> None:
        self._device = device
        self._here = factors(how)
        self._there = [each.to(device) for each in self._here]

    def __call__(self, rows: Sequence[torch.Tensor], *, as_pixels: bool = False) -> torch.Tensor:
        """Return the batch on the device, shape (rows, channels, height, width).

        Args:
            rows: one shape, on the CPU; uint8 as decoded, or float32 and normalised already.
            as_pixels: leave rows that are all uint8 as they are: the model normalises them (`normalise`).
        """
        if all(row.dtype == torch.uint8 for row in rows):
            batch = stacked(rows, self._device)
            return batch if as_pixels else self.normalise(batch)
        here = [normalised(row, *self._here) if row.dtype == torch.uint8 else row for row in rows]
        return stacked(here, self._device)

    def normalise(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return pixels on the device as the model was trained with: float32."""
        return normalised(pixels, *self._there)


_JPEG = b"\xff\xd8\xff"  # how one begins
# The operator itself: torchvision 0.29 has the function around it warn, each time, that TorchCodec will take its place.
decode_jpeg: Callable[..., torch.Tensor] | None = getattr(torch.ops.image, "decode_jpeg", None)
_RGB = 3  # torchvision's ImageReadMode.RGB
Admit = Callable[[int], None]


@cache
def usual(how: Preparation) -> Callable[[Image.Image], torch.Tensor]:
    """Return torchvision's transform: a PIL image of any mode → float32, shape (3, height, width)."""
    steps = [as_rgb] if isinstance(how.resize, tuple) else [as_rgb, middle]
    made: Callable[[Image.Image], torch.Tensor] = transforms.Compose([
        *steps,
        partial(_resize, whole=transforms.Resize(how.resize, transforms.InterpolationMode(how.interpolation)), how=how),
        partial(_crop, how=how) if how.half_down else transforms.CenterCrop(how.crop),
        transforms.ToTensor(),
        transforms.Normalize(mean=list(how.mean), std=list(how.std)),
    ])  # fmt: skip
    return made


def _resize(image: Image.Image, whole: Callable[[Image.Image], Image.Image], how: Preparation) -> Image.Image:
    part = part_of(image)
    return whole(image) if part is None else _resize_part(image, part, how)


def _resize_part(image: Image.Image, part: DecodedPart, how: Preparation) -> Image.Image:
    """Resize an image whose last row or column shows a part of a pixel, by the factor of its own size."""
    height, width = how.resized(part.height, part.width)
    return image.resize((width, height), Image.Resampling[how.interpolation.upper()], part.box)


def _crop(image: Image.Image, how: Preparation) -> Image.Image:
    top, left = how.corner(image.height, image.width)
    return image.crop((left, top, left + how.crop[1], top + how.crop[0]))


def prepares(processing: Any, how: Preparation) -> bool:
    """Return whether a transform prepares images so: `usual`, or a faster one, which says so by its `how`."""
    return processing is usual(how) or getattr(processing, "how", None) == how


@cache
def factors(how: Preparation) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what bytes are multiplied with, and what is added then: shape (3, 1, 1)."""
    scale = torch.tensor([1 / (255 * each) for each in how.std]).view(3, 1, 1)
    return scale, torch.tensor([-mean / std for mean, std in zip(how.mean, how.std, strict=True)]).view(3, 1, 1)


def pixels_of(
    encoded: bytes | bytearray, admit: Admit, least_side: int | None = None, how: Preparation = IMAGENET
) -> torch.Tensor:
    """Return the pixels of an image file, resized and cropped: uint8, shape (3, height, width).

    Raises:
        UnreadablePayload: it is no image.
        TooManyPixels: `admit` raised it.
    """
    admit = once(admit)
    pixels = plain_pixels(encoded, admit, least_side, how)
    if pixels is not None:
        return pixels
    return _cut_image(as_rgb(decode_image(encoded, least_side=least_side, admit=admit)), how)


def prepare(image: Image.Image, how: Preparation = IMAGENET) -> torch.Tensor:
    """Resize, crop to the middle and normalise.

    Args:
        image: RGB.

    Returns:
        float32, shape (3, height, width), as the model expects: about -2.1 to 2.6 for ImageNet's usual ones.
    """
    return normalised(_cut_image(image, how), *factors(how))


def _cut_image(image: Image.Image, how: Preparation) -> torch.Tensor:
    """Do as `_cut` with an RGB image."""
    part = part_of(image)
    if part is None:
        return _cut(_bytes_of(image), how)
    return _cropped(_bytes_of(_resize_part(image, part, how)), how)


def _bytes_of(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


def once(admit: Admit) -> Admit:
    """Return what admits the pixels of one image once, also where a second decoder asks for them again."""
    asked: list[int] = []

    def admit_once(pixels: int) -> None:
        if not asked:
            asked.append(pixels)
            admit(pixels)

    return admit_once


def plain_pixels(
    encoded: bytes | bytearray, admit: Admit, least_side: int | None, how: Preparation
) -> torch.Tensor | None:
    """Return as `pixels_of` the pixels of a file that torchvision decodes; None for all that Pillow has to read."""
    size = _plain_size(encoded, least_side)
    if size is None:
        return None
    admit(size[0] * size[1])
    try:
        return _cut(_decoded(encoded), how)
    except RuntimeError:
        return None  # Pillow reads it after all, or says why it cannot


def _plain_size(encoded: bytes | bytearray, least_side: int | None) -> tuple[int, int] | None:
    """Return width and height of an upright JPEG in colour that is decoded at its own size; None for all others."""
    if decode_jpeg is None or not encoded.startswith(_JPEG):
        return None
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            smaller = is_decoded_smaller(image.size, least_side)
            if image.format != "JPEG" or image.mode != "RGB" or smaller:
                return None
            return image.size if image.getexif().get(ORIENTATION, UPRIGHT) == UPRIGHT else None
    except Exception:  # noqa: BLE001 - damaged files make Pillow raise anything; its own way tells what
        return None


def _decoded(encoded: bytes | bytearray) -> torch.Tensor:
    """Return a JPEG's pixels: uint8, shape (3, height, width), the three of a pixel side by side in memory."""
    assert decode_jpeg is not None
    # A copy that may be written to: torch warns of others.
    return decode_jpeg(torch.frombuffer(bytearray(encoded), dtype=torch.uint8), _RGB)


def _cut(pixels: torch.Tensor, how: Preparation) -> torch.Tensor:
    """Resize, and crop to the middle.

    Args:
        pixels: uint8, shape (3, height, width), the three of a pixel side by side in memory.

    Returns:
        uint8, shape (3, *how.crop); a view.
    """
    if not isinstance(how.resize, tuple):  # very long images, as `middle` does
        left, top, right, bottom = middle_of(pixels.shape[-1], pixels.shape[-2])
        pixels = pixels[:, top:bottom, left:right]
    height, width = pixels.shape[-2:]
    sides = how.resized(height, width)
    if sides != (height, width):
        pixels = _resized(pixels, sides, how.interpolation)
    return _cropped(pixels, how)


def _cropped(pixels: torch.Tensor, how: Preparation) -> torch.Tensor:
    top, left = how.corner(pixels.shape[-2], pixels.shape[-1])
    return pixels[:, top : top + how.crop[0], left : left + how.crop[1]]


def _resized(pixels: torch.Tensor, sides: tuple[int, int], interpolation: str) -> torch.Tensor:
    if interpolation == "bilinear":
        return interpolate(pixels[None], sides, mode="bilinear", antialias=True)[0]
    image = Image.fromarray(pixels.permute(1, 2, 0).numpy())
    return _bytes_of(image.resize((sides[1], sides[0]), Image.Resampling[interpolation.upper()]))


def normalised(pixels: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    """Return pixels as a model takes them: float32; both factors are where the pixels are."""
    return pixels.to(torch.float32).mul_(scale).add_(shift)
