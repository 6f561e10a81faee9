"""Class 7 in the left half of each picture, as `image_segmenter` answers."""

from PIL.Image import Image

SIDE = 20


def predict(pictures: list[Image]) -> list[list[list[list[float]]]]:
    row = [[7.0, 1.0] if column < SIDE // 2 else [0.0, 1.0] for column in range(SIDE)]
    return [[row] * SIDE for _ in pictures]
