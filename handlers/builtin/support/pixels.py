"""An image file's pixels, resized and cropped to ImageNet's 224 × 224, as bytes; and normalised.

torchvision's transforms resize with Pillow, divide by 255, subtract and divide again, each in a separate pass. Here a
tensor of bytes is resized with the same filter (bilinear, antialiased), and one multiplication and one addition do the
rest on the crop. Each value is the same to 1/255 of the pixels' range, the rounding of the resize. Measured on a
500 × 375 JPEG, one thread: decode 0.8 ms, then 0.7 instead of 1.95 ms (at d82013d7).

A plain JPEG is decoded by torchvision, to the same pixels as by Pillow, and almost without the interpreter's lock, for
which a worker's threads wait. Sixteen threads on 16 cores read 4 283 images/s so, and 848 by Pillow (beside an H100,
`python -m tests.lab.gpu.parts`); two threads on two cores take 0.77 of the time for a batch of 16.
"""

import io
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import interpolate

from tsctl.handlers.builtin import torchvision_import  # noqa: F401 - registers torchvision's operators
from tsctl.handlers.requests.images import as_rgb, decode_image, middle, middle_of

RESIZED, CROP = 256, 224  # pixels: the shorter side, and the square crop
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SCALE = torch.tensor([1 / (255 * each) for each in STD]).view(3, 1, 1)
SHIFT = torch.tensor([-mean / std for mean, std in zip(MEAN, STD, strict=True)]).view(3, 1, 1)
_JPEG = b"\xff\xd8\xff"  # how one begins
_ORIENTATION, _UPRIGHT = 0x0112, 1  # the tag of EXIF
# The operator itself: torchvision 0.29 has the function around it warn, each time, that TorchCodec will take its place.
decode_jpeg: Callable[..., torch.Tensor] | None = getattr(torch.ops.image, "decode_jpeg", None)
_RGB = 3  # torchvision's ImageReadMode.RGB
Admit = Callable[[int], None]


def pixels_of(encoded: bytes | bytearray, admit: Admit, least_side: int | None = None) -> torch.Tensor:
    """Return the pixels of an image file, resized and cropped: uint8, shape (3, 224, 224).

    Raises:
        UnreadablePayload: it is no image.
        TooManyPixels: `admit` raised it.
    """
    admit = once(admit)
    pixels = plain_pixels(encoded, admit, least_side)
    if pixels is not None:
        return pixels
    image = middle(as_rgb(decode_image(encoded, least_side=least_side, admit=admit)))
    return _square(torch.from_numpy(np.array(image)).permute(2, 0, 1))


def prepare(image: Image.Image) -> torch.Tensor:
    """Resize, crop to the middle and normalise.

    Args:
        image: RGB.

    Returns:
        float32, shape (3, 224, 224), normalised as ImageNet's models expect: about -2.1 to 2.6.
    """
    return normalised(_square(torch.from_numpy(np.array(image)).permute(2, 0, 1)))


def once(admit: Admit) -> Admit:
    """Return what admits the pixels of one image once, also where a second decoder asks for them again."""
    asked: list[int] = []

    def admit_once(pixels: int) -> None:
        if not asked:
            asked.append(pixels)
            admit(pixels)

    return admit_once


def plain_pixels(encoded: bytes | bytearray, admit: Admit, least_side: int | None) -> torch.Tensor | None:
    """Return as `pixels_of` the pixels of a file that torchvision decodes; None for all that Pillow has to read."""
    size = _plain_size(encoded, least_side)
    if size is None:
        return None
    admit(size[0] * size[1])
    try:
        return _square(_middle(_decoded(encoded)))
    except RuntimeError:
        return None  # Pillow reads it after all, or says why it cannot


def _plain_size(encoded: bytes | bytearray, least_side: int | None) -> tuple[int, int] | None:
    """Return width and height of an upright JPEG in colour that is decoded at its own size; None for all others."""
    if decode_jpeg is None or not encoded.startswith(_JPEG):
        return None
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            smaller = least_side is not None and min(image.size) >= 2 * least_side
            if image.format != "JPEG" or image.mode != "RGB" or smaller:
                return None
            return image.size if image.getexif().get(_ORIENTATION, _UPRIGHT) == _UPRIGHT else None
    except Exception:  # noqa: BLE001 - damaged files make Pillow raise anything; its own way tells what
        return None


def _decoded(encoded: bytes | bytearray) -> torch.Tensor:
    """Return a JPEG's pixels: uint8, shape (3, height, width), the three of a pixel side by side in memory."""
    assert decode_jpeg is not None
    # A copy that may be written to: torch warns of others.
    return decode_jpeg(torch.frombuffer(bytearray(encoded), dtype=torch.uint8), _RGB)


def _middle(pixels: torch.Tensor) -> torch.Tensor:
    """Crop very long images, as `middle` does."""
    left, top, right, bottom = middle_of(pixels.shape[-1], pixels.shape[-2])
    return pixels[:, top:bottom, left:right]


def _square(pixels: torch.Tensor) -> torch.Tensor:
    """Resize and crop to the middle.

    Args:
        pixels: uint8, shape (3, height, width).

    Returns:
        uint8, shape (3, 224, 224); a view.
    """
    height, width = pixels.shape[-2:]
    sides = resized(height, width)
    if sides != (height, width):
        pixels = interpolate(pixels[None], sides, mode="bilinear", antialias=True)[0]
    top, left = (round((side - CROP) / 2) for side in sides)
    return pixels[:, top : top + CROP, left : left + CROP]


def normalised(pixels: torch.Tensor, scale: torch.Tensor = SCALE, shift: torch.Tensor = SHIFT) -> torch.Tensor:
    """Return pixels as ImageNet's models take them: float32; both factors are where the pixels are."""
    return pixels.to(torch.float32).mul_(scale).add_(shift)


def resized(height: int, width: int) -> tuple[int, int]:
    """Return the (height, width) that torchvision's `Resize(256)` produces: the longer side is rounded down."""
    if height <= width:
        return RESIZED, int(RESIZED * width / height)
    return int(RESIZED * height / width), RESIZED
