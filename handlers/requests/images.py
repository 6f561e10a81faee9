"""Decode images, and bring them into one form, without torch."""

import io
from collections.abc import Callable

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
        least_side: a JPEG may be decoded at a half, a quarter or an eighth of its size, whose shorter side has at
            least so many pixels; None for its own size.
        admit: called with the number of pixels before they are decoded; may wait, or raise TooManyPixels.

    Returns:
        The image, in the mode of the file.

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
            if least_side is not None and image.format in ("JPEG", "MPO"):
                _decode_smaller(image, least_side)
            if admit is not None:
                admit(image.width * image.height)
            image.load()
            # Read now and then dropped: `exif_transpose` would rewrite the tags, and fails where a camera wrote one
            # with the wrong type.
            image.getexif()
            for key in ("exif", "Raw profile type exif"):
                image.info.pop(key, None)
            ImageOps.exif_transpose(image, in_place=True)
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


def _decode_smaller(image: Image.Image, least_side: int) -> None:
    """Let libjpeg make fewer pixels: its inverse cosine transform of a block of 8 × 8 can give 4 × 4, 2 × 2 or one."""
    shorter = min(image.size)
    if shorter >= 2 * least_side:
        image.draft(image.mode, (image.width * least_side // shorter, image.height * least_side // shorter))


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
