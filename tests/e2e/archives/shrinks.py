"""A typed handler: an image and the largest size that it may have."""

from typing import Annotated

import msgspec
from PIL import Image


class Box(msgspec.Struct):
    width: Annotated[int, msgspec.Meta(ge=1)]
    height: int = 100


def predict(image: Image.Image, box: Box | None = None) -> Image.Image | dict[str, int]:
    if box is None:
        return {"width": image.width, "height": image.height}
    image.thumbnail((box.width, box.height))
    return image
