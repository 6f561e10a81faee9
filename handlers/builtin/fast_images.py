"""Fast preprocessing of an image file to ImageNet's 224 × 224: resize bytes, and normalise only the crop.

torchvision's transforms resize with Pillow, divide by 255, subtract and divide again, each in a separate pass. Here a
tensor of bytes is resized with the same filter (bilinear, antialiased), and one multiplication and one addition do the
rest on the crop. Each value is the same to 1/255 of the pixels' range, the rounding of the resize. Measured on a
500 × 375 JPEG, one thread: decode 0.8 ms, then 0.7 instead of 1.95 ms (at d82013d7).

A plain JPEG is decoded by torchvision, to the same pixels as by Pillow, and almost without the interpreter's lock, for
which a worker's threads wait. Sixteen threads on 16 cores read 4 283 images/s so, and 848 by Pillow (beside an H100,
`python -m tests.lab.gpu.parts`). To a GPU go the crop's bytes, which are normalised there (staging.py).
"""

import io
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import interpolate

from tsctl.handlers.builtin import torchvision_import  # noqa: F401 - registers torchvision's operators
from tsctl.handlers.builtin.base import payload_of
from tsctl.handlers.builtin.support.decoders import Decoders, admission
from tsctl.handlers.builtin.support.readers import Readers
from tsctl.handlers.builtin.support.staging import Staging
from tsctl.handlers.names import DEFAULT_OPTIMIZATIONS
from tsctl.handlers.requests.images import decode_image

_log = logging.getLogger(__name__)

RESIZED, CROP = 256, 224  # pixels: the shorter side, and the square crop
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_SCALE = torch.tensor([1 / (255 * each) for each in STD]).view(3, 1, 1)
_SHIFT = torch.tensor([-mean / std for mean, std in zip(MEAN, STD, strict=True)]).view(3, 1, 1)
_JPEG = b"\xff\xd8\xff"  # how one begins
_ORIENTATION, _UPRIGHT = 0x0112, 1  # the tag of EXIF
# The operator itself: torchvision 0.29 has the function around it warn, each time, that TorchCodec will take its place.
decode_jpeg: Callable[..., torch.Tensor] | None = getattr(torch.ops.image, "decode_jpeg", None)
_RGB = 3  # torchvision's ImageReadMode.RGB
Admit = Callable[[int], None]


def use(handler: Any) -> bool:
    """Switch a handler to the fast path, if it prepares images as our `image_classifier` does.

    Returns:
        Whether the handler was switched; a handler with its own transforms keeps them.
    """
    from tsctl.handlers.builtin.image_classifier import ImageClassifier, middle
    from tsctl.handlers.builtin.vision import VisionHandler

    usual: Callable[[Image.Image], torch.Tensor] = ImageClassifier.image_processing
    if not is_usual(handler):
        return False

    def process(image: Image.Image) -> torch.Tensor:
        if image.mode != "RGB" or "transparency" in image.info:
            tensor: torch.Tensor = usual(image)
            return tensor
        return prepare(middle(image))

    handler.image_processing = process
    if not decodes_as_usual(handler):  # a user's own may not be thread-safe
        return True
    handler.spread = Decoders().map
    handler.read_image = partial(_read, handler)
    if handler.device.type == "cuda" and type(handler).preprocess is VisionHandler.preprocess:
        handler.read_image = lambda encoded, admit: pixels_of(encoded, admit, handler.least_side)
        handler.join = Staging(handler.device, _SCALE, _SHIFT)
        if handler.readers is not None:
            handler.spread = partial(_spread, handler, handler.readers)
    return True


def readers_for(handler: Any, threads: int, rows: int) -> Readers | None:
    """Start the processes that read images for a handler whose model will be on a GPU.

    Returns:
        None if it does not have this fast path by default, or its process has called CUDA, or must not be forked.
    """
    kind = type(handler)
    if (kind.__module__, kind.__qualname__) not in DEFAULT_OPTIMIZATIONS or not is_usual(handler):
        return None
    if torch.cuda.is_initialized():
        return None
    try:
        return Readers(_read_apart, threads, (3, CROP, CROP), rows)
    except OSError as error:
        _log.warning("the worker reads images by itself: no process for that can be started: %s", error)
        return None


def _read_apart(encoded: bytes, least_side: int | None) -> torch.Tensor:
    with admission() as admit:
        return pixels_of(encoded, admit, least_side)


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
    from tsctl.handlers.builtin.image_classifier import ImageClassifier

    processing = getattr(handler, "image_processing", None)
    return processing is ImageClassifier.image_processing or getattr(processing, "__module__", "") == __name__


def decodes_as_usual(handler: Any) -> bool:
    from tsctl.handlers.builtin.vision import VisionHandler

    return type(handler).decode_row is VisionHandler.decode_row


def stop_using(handler: Any) -> None:
    for name in ("image_processing", "read_image", "join"):
        vars(handler).pop(name, None)
    handler.spread = map


def prepare(image: Image.Image) -> torch.Tensor:
    """Resize, crop to the middle and normalise.

    Args:
        image: RGB.

    Returns:
        float32, shape (3, 224, 224), normalised as ImageNet's models expect: about -2.1 to 2.6.
    """
    return _normalised(_square(torch.from_numpy(np.array(image)).permute(2, 0, 1)))


def pixels_of(encoded: bytes | bytearray, admit: Admit, least_side: int | None = None) -> torch.Tensor:
    """Return the pixels of an image file, resized and cropped: uint8, shape (3, 224, 224).

    Raises:
        UnreadablePayload: it is no image.
        TooManyPixels: `admit` raised it.
    """
    from tsctl.handlers.builtin.image_classifier import middle
    from tsctl.handlers.builtin.vision import as_rgb

    admit = _once(admit)
    pixels = _plain_pixels(encoded, admit, least_side)
    if pixels is not None:
        return pixels
    image = middle(as_rgb(decode_image(encoded, least_side=least_side, admit=admit)))
    return _square(torch.from_numpy(np.array(image)).permute(2, 0, 1))


def _read(handler: Any, encoded: bytes | bytearray, admit: Admit) -> torch.Tensor:
    """Return the row of an image file: float32, as the model takes it; raises as `pixels_of` does."""
    admit = _once(admit)
    pixels = _plain_pixels(encoded, admit, handler.least_side)
    if pixels is not None:
        return _normalised(pixels)
    image = decode_image(encoded, least_side=handler.least_side, admit=admit)
    tensor: torch.Tensor = handler.image_processing(image)
    return tensor


def _once(admit: Admit) -> Admit:
    """Return what admits the pixels of one image once, also where a second decoder asks for them again."""
    asked: list[int] = []

    def admit_once(pixels: int) -> None:
        if not asked:
            asked.append(pixels)
            admit(pixels)

    return admit_once


def _plain_pixels(encoded: bytes | bytearray, admit: Admit, least_side: int | None) -> torch.Tensor | None:
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
    """Do as `middle` of image_classifier.py."""
    from tsctl.handlers.builtin.image_classifier import middle_of

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
    sides = _resized(height, width)
    if sides != (height, width):
        pixels = interpolate(pixels[None], sides, mode="bilinear", antialias=True)[0]
    top, left = (round((side - CROP) / 2) for side in sides)
    return pixels[:, top : top + CROP, left : left + CROP]


def _normalised(pixels: torch.Tensor) -> torch.Tensor:
    return pixels.to(torch.float32).mul_(_SCALE).add_(_SHIFT)


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
