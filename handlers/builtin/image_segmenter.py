"""`image_segmenter`: an image in, the most probable class of each pixel out."""

from typing import Any

import torch

from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.support.model_outputs import logits_of
from tsctl.handlers.builtin.vision import VisionHandler
from tsctl.handlers.requests.early_answers import coming_of
from tsctl.handlers.sdk.timer import timed


class ImageSegmenter(VisionHandler):
    """For torchvision's segmentation models, and others whose output has the member `out`.

    The answer to a row has the shape (224, 224, 2), or that of `crop`: for each pixel the number of its class and its
    probability in [0, 1].
    """

    preparation = ImageClassifier.preparation
    image_processing = ImageClassifier.image_processing
    chooses_class = True

    @timed
    def postprocess(self, data: dict[str, torch.Tensor]) -> list[Any]:
        """Return for each row nested lists of shape (height, width, 2).

        Args:
            data: `out`, the logits, floating point, shape (rows, classes, height, width).
        """
        pixels: list[Any] = coming_of(data, self.answers_of).wait().tolist()
        return pixels

    def answers_of(self, output: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return of each pixel the number of its class and its probability, shape (rows, height, width, 2)."""
        logits = logits_of(output, "rows, classes, height, width", "out")
        probabilities, classes = torch.softmax(logits, dim=1).max(dim=1)
        return torch.stack([classes.to(probabilities.dtype), probabilities], dim=3)
