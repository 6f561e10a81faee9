"""Decode a JPEG that is much larger than needed at a half or a quarter of its size.

libjpeg makes the smaller image at once, from the low frequencies of each block. What is then resized, to 256 pixels for
ImageNet's usual models, still has two and a half times as many or more (`Preparation.least_side`), so that the filter
of the resize decides. An odd side is rounded up, and the exact part of the pixels is resized (`images.DecodedPart`):
resized whole, a photograph of 3001 × 2003 differs by 19/255 (bilinear) to 27/255 (Lanczos). The largest differences,
of two photographs of 640 × 427, enlarged, and of noise whose amplitude falls with the frequency, at a half of even and
odd sizes, resized to 256:

    times as many     2   2.25   2.5    3   3.5
    bilinear         12      7     7    6     4   /255
    bicubic          11      9     8    6     4
    lanczos          13      9     9    6     4
    hamming          13     11     9    7     5
    box              93     49    45   62    30

No bound: resized to 224 or 384, Lanczos differs by 8/255, and a photograph that was stretched to twice its height by
13/255 at a quarter (bilinear).

Measured on one thread: 12 megapixels 65 ms instead of 153 (at d82013d7).
"""

import io
from typing import Any

from PIL import Image

from tsctl.handlers.builtin import fast_images
from tsctl.handlers.builtin.base import payload_of
from tsctl.handlers.requests.images import decode_image
from tsctl.handlers.requests.preparation import IMAGENET, Preparation


def use(handler: Any) -> bool:
    """Switch a handler, if it prepares images as our `image_classifier` does, or faster, by a filter that allows it.

    Returns:
        Whether the handler was switched.
    """
    if not fast_images.is_usual(handler) or not fast_images.decodes_as_usual(handler):
        return False
    handler.least_side = handler.preparation.least_side
    return handler.least_side is not None


def stop_using(handler: Any) -> None:
    handler.least_side = None


def enlarge(row: Any, how: Preparation = IMAGENET) -> bytes:
    """Return a row's image as a JPEG that is large enough for a smaller one to be decoded.

    Args:
        how: with a `least_side`.

    Raises:
        UnreadablePayload: the row is no image.
    """
    image = decode_image(bytes(payload_of(row))).convert("RGB")
    assert how.least_side is not None
    times = 2 * how.least_side / min(image.size)
    if times > 1:
        image = image.resize((round(image.width * times), round(image.height * times)), Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()
