"""`image_classifier`: an image in, its most probable classes out."""

import torch
from torchvision import transforms

from handlers.defaults.labels import map_class_to_label
from handlers.defaults.vision import VisionHandler, as_rgb


class ImageClassifier(VisionHandler):
    """For models trained on ImageNet's way of cropping and normalising.

    The answer to a row is an object: class name → probability, most probable first.
    """

    topk = 5

    image_processing = transforms.Compose([
        as_rgb,
        transforms.Resize(256),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
    ])  # fmt: skip

    def set_max_result_classes(self, topk: int) -> None:
        self.topk = topk

    def get_max_result_classes(self) -> int:
        return self.topk

    def postprocess(self, data: torch.Tensor) -> list[dict[str, float]]:
        """Make the answers.

        Args:
            data: the model's logits, shape (rows, classes).
        """
        probabilities = torch.softmax(data, dim=1)
        best, classes = torch.topk(probabilities, min(self.topk, probabilities.shape[1]), dim=1)
        return map_class_to_label(best.tolist(), self.mapping, classes.tolist())
