"""Photographs in the data of scikit-image, scikit-learn and matplotlib, and crops of them that a seed draws."""

import io
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image

FILES = {
    "skimage/data": (
        "astronaut.png", "brick.png", "camera.png", "cell.png", "chelsea.png", "clock_motion.png", "coffee.png",
        "coins.png", "grass.png", "gravel.png", "hubble_deep_field.jpg", "ihc.png", "microaneurysms.png", "moon.png",
        "motorcycle_left.png", "motorcycle_right.png", "page.png", "retina.jpg", "rocket.jpg", "text.png",
    ),
    "sklearn/datasets/images": ("china.jpg", "flower.jpg"),
    "matplotlib/mpl-data/sample_data": ("grace_hopper.jpg",),
}  # fmt: skip
EACH = 25  # crops of a photograph
LEAST, MOST = 0.35, 1.0  # of its shorter side


def photographs() -> Iterator[tuple[str, Image.Image]]:
    """Yield each photograph with its name, in RGB."""
    for folder, names in FILES.items():
        package, _, inside = folder.partition("/")
        found = find_spec(package)
        assert found is not None and found.origin is not None, f"{package} is not installed"
        for name in names:
            with Image.open(Path(found.origin).parent / inside / name) as image:
                yield name, image.convert("RGB")


def crops(seed: int) -> list[bytes]:
    """Return JPEGs of crops, `EACH` of each photograph: of any place, some mirrored; the same for the same seed."""
    drawn = np.random.default_rng(seed)
    made = []
    for _, image in photographs():
        for _ in range(EACH):
            side = round(min(image.size) * drawn.uniform(LEAST, MOST))
            left, top = (int(drawn.integers(0, length - side + 1)) for length in image.size)
            crop = image.crop((left, top, left + side, top + side))
            if drawn.integers(2):
                crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            file = io.BytesIO()
            crop.save(file, "JPEG", quality=90)
            made.append(file.getvalue())
    return made
