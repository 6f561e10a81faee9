"""`object_detector`: an image in, the objects on it with their boxes out."""

from typing import Any

import torch

from handlers.builtin.base import decode_rows
from handlers.builtin.support.labels import map_class_to_label
from handlers.builtin.torchvision_import import transforms
from handlers.builtin.vision import VisionHandler, as_rgb
from handlers.sdk.timer import timed


class ObjectDetector(VisionHandler):
    """For torchvision's detection models, and others with the same output.

    The answer to a row is a list, an object for each detection: `{name: [x1, y1, x2, y2], "score": number}`; boxes are
    in pixels, scores in [0, 1].
    """

    image_processing = transforms.Compose([as_rgb, transforms.ToTensor()])
    threshold = 0.5
    chooses_class = False

    @timed
    def preprocess(self, data: list[Any]) -> torch.Tensor | list[torch.Tensor]:  # type: ignore[override]
        """Decode to float32 in [0, 1]: (rows, 3, height, width) for equal sizes, else a list of (3, height, width).

        torchvision's models take both forms; TorchServe's handler supports only the first.

        Raises:
            UnreadableRows: some rows are not images; only for rows that `prepare` has not seen.
        """
        images = [image.to(self.device) for image in decode_rows(data, self.decode_row)]
        return torch.stack(images) if len({image.shape for image in images}) == 1 else images

    @timed
    def inference(self, data: torch.Tensor | list[torch.Tensor], *args: Any, **kwargs: Any) -> Any:
        with torch.inference_mode():
            return self.model(data, *args, **kwargs)

    @timed
    def postprocess(self, data: Any) -> list[list[dict[str, Any]]]:
        """Return each row's detections with a score of at least `threshold`.

        Args:
            data: for each row `boxes`, shape (detections, 4), `labels`, int64, and `scores`, shape (detections,). In a
                scripted model of torchvision a dict of losses precedes them.
        """
        if isinstance(data, tuple):
            data = data[-1]
        return [self._detections(row) for row in data]

    def _detections(self, row: dict[str, torch.Tensor]) -> list[dict[str, Any]]:
        kept = row["scores"] >= self.threshold
        boxes, labels, scores = (row[key][kept].tolist() for key in ("boxes", "labels", "scores"))
        return [
            {**map_class_to_label([[box]], self.mapping, [[label]])[0], "score": score}
            for box, label, score in zip(boxes, labels, scores, strict=True)
        ]
