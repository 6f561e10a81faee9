"""`image_classifier`: an image in, its most probable classes out."""

from typing import Any

import torch

from tsctl.handlers.builtin.support.labels import each_named
from tsctl.handlers.builtin.support.model_outputs import logits_of
from tsctl.handlers.builtin.support.pixels import usual
from tsctl.handlers.builtin.vision import VisionHandler
from tsctl.handlers.requests.early_answers import coming_of
from tsctl.handlers.requests.preparation import IMAGENET
from tsctl.handlers.sdk.timer import timed


class ImageClassifier(VisionHandler):
    """For models trained with ImageNet's cropping and normalisation, or as the archive says (requests/preparation.py).

    Their input is float32, shape (rows, 3, 224, 224), or with the sides of `crop`.

    The answer to a row is an object: class name → probability in [0, 1], most probable first.
    """

    topk = 5
    chooses_class = True

    preparation = IMAGENET
    image_processing: Any = usual(IMAGENET)

    def set_max_result_classes(self, topk: int) -> None:
        self.topk = topk

    def get_max_result_classes(self) -> int:
        return self.topk

    @timed
    def postprocess(self, data: torch.Tensor) -> list[dict[str, float]]:
        """Return for each row its `topk` most probable classes: name → probability in [0, 1]; KeyError without a name.

        Args:
            data: the model's logits, floating point, shape (rows, classes).
        """
        # A double holds probabilities and numbers exactly.
        scores, numbers = coming_of(data, self.answers_of).wait().unbind(1)
        classes = [[int(number) for number in row] for row in numbers.tolist()]
        return each_named(scores.tolist(), self.mapping, classes)

    def answers_of(self, output: torch.Tensor) -> torch.Tensor:
        """Return probabilities and numbers of the best classes: float64, shape (rows, 2, classes)."""
        probabilities = torch.softmax(logits_of(output, "rows, classes"), dim=1)
        best, classes = torch.topk(probabilities, min(self.topk, probabilities.shape[1]), dim=1)
        return torch.stack((best.to(torch.float64), classes.to(torch.float64)), dim=1)
