"""`VisionHandler`: images in, one stacked tensor for the model."""

import base64
import io
from typing import Any

import torch
from PIL import Image, ImageOps

from handlers.context import Context
from handlers.defaults.base import BaseHandler, PreparedRow, payload_of
from handlers.errors import UnreadablePayload, UnreadableRows


def decode_image(encoded: bytes | bytearray) -> Image.Image:
    """Decode one image file and turn it upright, as its EXIF orientation says.

    Args:
        encoded: any format that Pillow reads.

    Returns:
        The image, in the mode that the file has.

    Raises:
        UnreadablePayload: Pillow cannot read it.
    """
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            image.load()
            # Read now and then dropped: `exif_transpose` would write the tags anew, and fails where
            # a camera wrote one with the wrong type.
            image.getexif()
            for key in ("exif", "Raw profile type exif"):
                image.info.pop(key, None)
            return ImageOps.exif_transpose(image)
    except MemoryError:
        raise
    # Damaged files make Pillow's readers raise struct.error, RuntimeError, AttributeError and more.
    except Exception as error:
        raise UnreadablePayload(f"The request's {len(encoded)} bytes are no image: {error}") from error


def as_rgb(image: Image.Image) -> Image.Image:
    """Convert an image of any mode to RGB; what is transparent becomes white."""
    if image.mode.startswith("I;16"):  # Pillow would clip: all from 256 to 65535 became white
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        ground = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(ground, image)
    return image.convert("RGB")


class VisionHandler(BaseHandler):
    """Decodes each row and stacks them.

    A row is an encoded image (as `data` or `body`), the same in base64, or nested lists of numbers.
    Subclasses set `image_processing`: PIL image → tensor, all of one shape.
    """

    image_processing: Any

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        if not context.system_properties.get("limit_max_image_pixels", True):
            Image.MAX_IMAGE_PIXELS = None  # the operator expects images that Pillow takes for traps

    def decode_row(self, row: Any) -> torch.Tensor:
        """Make one row's tensor.

        Raises:
            UnreadablePayload: the row is no image, and no array of numbers.
        """
        payload = payload_of(row)
        if isinstance(payload, str):
            try:
                # Without white space: the tools that write base64 break its lines.
                payload = base64.b64decode("".join(payload.split()), validate=True)
            except ValueError as error:
                raise UnreadablePayload(f"The request's text is no base64 of an image: {error}") from error
        if isinstance(payload, (bytes, bytearray)):
            tensor: torch.Tensor = self.image_processing(decode_image(payload))
            return tensor
        try:
            return torch.tensor(payload, dtype=torch.float32)
        except (TypeError, ValueError, RuntimeError) as error:
            raise UnreadablePayload(f"The request is neither an image nor an array of numbers: {error}") from error

    def prepare(self, data: list[Any]) -> dict[int, UnreadablePayload]:
        if type(self).preprocess is not VisionHandler.preprocess:
            return {}
        unreadable = {}
        for index, row in enumerate(data):
            try:
                prepared = PreparedRow(row)
                prepared.prepared = self.decode_row(row)
                data[index] = prepared
            except UnreadablePayload as error:
                unreadable[index] = error
        return unreadable

    def preprocess(self, data: list[Any]) -> torch.Tensor:
        """Decode and stack: shape (rows, channels, height, width) for images, on the handler's device.

        Raises:
            UnreadableRows: some rows are no images; only where `prepare` has not seen them.
        """
        rows, unreadable = [], {}
        for index, row in enumerate(data):
            try:
                rows.append(row.prepared if isinstance(row, PreparedRow) else self.decode_row(row))
            except UnreadablePayload as error:
                unreadable[index] = error
        if unreadable:
            raise UnreadableRows(unreadable)
        return torch.stack(rows).to(self.device)
