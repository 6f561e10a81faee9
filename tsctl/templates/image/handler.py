"""A handler: one function of images. A request is a JPEG or PNG file; it arrives decoded."""

from typing import Any

from PIL import ImageStat
from PIL.Image import Image


def predict(images: list[Image]) -> list[dict[str, Any]]:
    """Return the size and the mean colour of each image of a batch."""
    return [
        {"width": image.width, "height": image.height, "colour": [round(mean) for mean in ImageStat.Stat(image).mean]}
        for image in (image.convert("RGB") for image in images)
    ]
