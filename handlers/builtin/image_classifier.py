"""`image_classifier`: an image in, its most probable classes out."""

import torch
from PIL import Image

from tsctl.handlers.builtin.support.labels import map_class_to_label
from tsctl.handlers.builtin.torchvision_import import transforms
from tsctl.handlers.builtin.vision import VisionHandler, as_rgb
from tsctl.handlers.sdk.timer import timed

LONGEST = 16  # times as long as wide


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


class ImageClassifier(VisionHandler):
    """For models trained with ImageNet's cropping and normalisation; their input is float32, shape (rows, 3, 224, 224).

    The answer to a row is an object: class name → probability in [0, 1], most probable first.
    """

    topk = 5
    chooses_class = True

    image_processing = transforms.Compose([
        as_rgb,
        middle,
        transforms.Resize(256),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
    ])  # fmt: skip

    def set_max_result_classes(self, topk: int) -> None:
        self.topk = topk

    def get_max_result_classes(self) -> int:
        return self.topk

    @timed
    def postprocess(self, data: torch.Tensor) -> list[dict[str, float]]:
        """Return for each row its `topk` most probable classes: name → probability in [0, 1].

        Args:
            data: the model's logits, floating point, shape (rows, classes).
        """
        probabilities = torch.softmax(data, dim=1)
        best, classes = torch.topk(probabilities, min(self.topk, probabilities.shape[1]), dim=1)
        # In one copy from a GPU, for which this waits; a double holds both exactly.
        scores, numbers = torch.stack((best.to(torch.float64), classes.to(torch.float64))).tolist()
        return map_class_to_label(scores, self.mapping, [[int(number) for number in row] for row in numbers])
