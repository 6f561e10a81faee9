"""Decode images, and bring them into one form, without torch."""

import io
from collections.abc import Callable
from typing import NamedTuple

from PIL import Image, ImageOps, UnidentifiedImageError

from tsctl.handlers.sdk.errors import TooManyPixels, UnreadablePayload

LONGEST = 16  # times as long as wide
_STRIP = 2**20  # pixels
# Brands of ISO's media files: what phones and browsers save pictures as.
_BRANDS = {
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"), "HEIC"),
    b"avif": "AVIF",
    b"avis": "AVIF",
}
_PART = "part"  # the key of an image's `info`; a PNG may have a text of that name
ORIENTATION, UPRIGHT = 0x0112, 1  # the tag of EXIF, and its value where nothing is turned


class DecodedPart(NamedTuple):
    """The exact place of a JPEG of odd sides in the pixels that are decoded at a part of its size.

    libjpeg rounds up: the last row and column of pixels stand for a part of a pixel only.

    Attributes:
        width, height: of the upright image at its own size.
        box: the exact part of the decoded pixels that shows the image: left, top, right, bottom.
    """

    width: int
    height: int
    box: tuple[float, float, float, float]


def decode_image(
    encoded: bytes | bytearray,
    most_pixels: int | None = None,
    least_side: int | None = None,
    admit: Callable[[int], None] | None = None,
) -> Image.Image:
    """Decode one image file and turn the image upright according to its EXIF orientation.

    Args:
        encoded: any format that Pillow reads, but for EPS.
        most_pixels: larger images are refused before their pixels are decoded; None leaves the limit to Pillow.
        least_side: a JPEG may be decoded at a half or a quarter of its size, whose shorter side has at
            least so many pixels; None for its own size.
        admit: called with the number of pixels before they are decoded; may wait, or raise TooManyPixels.

    Returns:
        The image, in the mode of the file; `part_of` says whether its sides were rounded.

    Raises:
        UnreadablePayload: Pillow cannot read the file, or it is EPS, or the image has too many pixels.
        TooManyPixels: `admit` raised it.
    """
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            if image.format == "EPS":  # a program, which Pillow would let Ghostscript run
                raise UnreadablePayload("the image is EPS, which is not read here: send JPEG or PNG")
            if most_pixels is not None and image.width * image.height > most_pixels:
                size = f"{image.width} × {image.height} pixels"
                raise UnreadablePayload(f"the image has {size}; at most {most_pixels} are read")
            whole, scale = image.size, 1
            if least_side is not None and image.format in ("JPEG", "MPO"):
                scale = _decode_smaller(image, least_side)
            if admit is not None:
                admit(image.width * image.height)
            image.load()
            # Read now and then dropped: `exif_transpose` would rewrite the tags, and fails where a camera wrote one
            # with the wrong type.
            orientation = image.getexif().get(ORIENTATION, UPRIGHT)
            for key in ("exif", "Raw profile type exif"):
                image.info.pop(key, None)
            ImageOps.exif_transpose(image, in_place=True)
            if any(side % scale for side in whole):
                image.info[_PART] = _part(image.size, whole, scale, orientation)
            return image._new(image.im)  # as `copy` does, without copying the pixels
    except (MemoryError, UnreadablePayload, TooManyPixels):
        raise
    except UnidentifiedImageError as error:  # Pillow's own text names an object's address
        raise UnreadablePayload(
            _known_by_name(bytes(encoded[:12]))
            or f"The request's {len(encoded)} bytes are not an image: cannot identify image file"
        ) from error
    # Damaged files make Pillow's readers raise struct.error, RuntimeError, AttributeError and more.
    except Exception as error:
        raise UnreadablePayload(f"The request's {len(encoded)} bytes are not an image: {error}") from error


def _known_by_name(head: bytes) -> str:
    """Return the sentence on a format that Pillow alone does not read; empty for anything else."""
    kind = _BRANDS.get(head[8:12]) if head[4:8] == b"ftyp" else None
    if kind is None:
        return ""
    remedy = " (a handler reads it after `pillow_heif.register_heif_opener()`)" if kind == "HEIC" else ""
    return f"The request is an image of the format {kind}, which is not read here: send JPEG or PNG{remedy}"


def is_decoded_smaller(size: tuple[int, int], least_side: int | None) -> bool:
    """Return whether a JPEG is decoded at a part of its size; a very long one is not, which `middle` crops."""
    return least_side is not None and 2 * least_side <= min(size) and max(size) <= LONGEST * min(size)


def _decode_smaller(image: Image.Image, least_side: int) -> int:
    """Let libjpeg make fewer pixels: its inverse cosine transform of a block of 8 × 8 can give 4 × 4 or 2 × 2.

    An eighth, one pixel of a block, is its mean: enlarged photographs then differed by 9/255 to 12/255.

    Returns:
        By how much each side is divided, and rounded up.
    """
    if not is_decoded_smaller(image.size, least_side):
        return 1
    width, shorter = image.width, min(image.size)
    kept = max(least_side, shorter // 4)
    drafted = image.draft(image.mode, (width * kept // shorter, image.height * kept // shorter))
    return 1 if drafted is None else round(width / drafted[1][2])


def _part(decoded: tuple[int, int], size: tuple[int, int], scale: int, orientation: int) -> DecodedPart:
    """Return what an upright image is a part of.

    Args:
        decoded: its width and height.
        size: those of the file, as it lies.
        orientation: of EXIF, from 1 to 8: 2, 3, 6 and 7 bring the last column or row to the left, and 3, 4, 7 and 8 to
            the top.
    """
    width, height = size[::-1] if orientation in (5, 6, 7, 8) else size
    left = decoded[0] - width / scale if orientation in (2, 3, 6, 7) else 0
    top = decoded[1] - height / scale if orientation in (3, 4, 7, 8) else 0
    return DecodedPart(width, height, (left, top, left + width / scale, top + height / scale))


def part_of(image: Image.Image) -> DecodedPart | None:
    """Return what an image of `decode_image`, or its `as_rgb`, is a part of; None where its sides are exact."""
    part = image.info.get(_PART)
    return part if isinstance(part, DecodedPart) else None


def as_rgb(image: Image.Image) -> Image.Image:
    """Convert an image of any mode to RGB; transparent pixels become white. An RGB image is returned as it is."""
    if image.mode.startswith("I;16"):  # Pillow would clip: all values from 256 to 65535 would become white
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        return _on_white(image)
    return image if image.mode == "RGB" else image.convert("RGB")


def _on_white(image: Image.Image) -> Image.Image:
    """Return an RGB image of one with transparent pixels, made of strips: at once, it would be held four times."""
    flat = Image.new("RGB", image.size)
    rows = max(1, _STRIP // image.width)
    for top in range(0, image.height, rows):
        strip = image.crop((0, top, image.width, min(top + rows, image.height))).convert("RGBA")
        flat.paste(Image.alpha_composite(Image.new("RGBA", strip.size, "white"), strip).convert("RGB"), (0, top))
    return flat


def middle(image: Image.Image) -> Image.Image:
    """Crop a very long image to its middle, a superset of the later square crop.

    Otherwise a PNG of 80 bytes, 2000 × 1 pixels, would be resized to 512 000 × 256: 1 GiB.
    """
    box = middle_of(*image.size)
    return image if box == (0, 0, *image.size) else image.crop(box)


def middle_of(width: int, height: int) -> tuple[int, int, int, int]:
    """Return what `middle` keeps of an image: left, top, right, bottom."""
    longest = LONGEST * min(width, height)
    kept_width, kept_height = min(width, longest), min(height, longest)
    left, top = (width - kept_width) // 2, (height - kept_height) // 2
    return left, top, left + kept_width, top + kept_height
