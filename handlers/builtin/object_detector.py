"""`object_detector`: an image in, the objects on it with their boxes out."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from PIL import Image

from tsctl.handlers.builtin.base import PreparedRow, decode_rows, input_device, prepare_rows
from tsctl.handlers.builtin.support.labels import map_class_to_label
from tsctl.handlers.builtin.torchvision_import import transforms
from tsctl.handlers.builtin.vision import VisionHandler
from tsctl.handlers.requests.gpu_copies import fetched, side_by_side, staged
from tsctl.handlers.requests.images import as_rgb, decode_image
from tsctl.handlers.requests.pixels import Pixels
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import InvalidResult, UnreadablePayload
from tsctl.handlers.sdk.timer import timed

_MEMBERS = {"boxes", "labels", "scores"}


class ObjectDetector(VisionHandler):
    """For torchvision's detection models, and others with the same output.

    The answer to a row is a list, an object for each detection: `{name: [x1, y1, x2, y2], "score": number}`; boxes are
    in pixels, scores in [0, 1].

    Images keep their size, 12 bytes a pixel. So a batch runs in groups, which have no more pixels than Pillow lets one
    image have: eight rows of 88 million pixels would take 8 GiB, twice where they are stacked.
    """

    image_processing = transforms.Compose([as_rgb, transforms.ToTensor()])
    threshold = 0.5
    chooses_class = False

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        own = type(self)
        usual = own.decode_row is VisionHandler.decode_row and own.preprocess is ObjectDetector.preprocess
        if self.device.type == "cuda" and usual:
            self.read_image = self.read_bytes  # bytes cross the bus

    def prepare(self, data: list[Any]) -> dict[int, UnreadablePayload]:
        """Decode rows as far as their pixels fit beside each other; the others stay as they are."""
        if type(self).preprocess is not ObjectDetector.preprocess:
            return {}
        if type(self).decode_row is not VisionHandler.decode_row:  # a user's own, whose pixels are not known before
            return prepare_rows(data, self.decode_row)
        pixels = Pixels()
        pixels.most = Image.MAX_IMAGE_PIXELS

        def decode(row: Any) -> torch.Tensor:
            pixels.begin_row()
            tensor = self._decode_within(row, pixels.admit)
            pixels.keep()
            return tensor

        return prepare_rows(data, decode)

    @property
    def _shape_of_arrays(self) -> tuple[int, ...] | None:
        return (3, -1, -1) if self.image_processing is ObjectDetector.image_processing else None

    def _likeness_of(self, prepared: torch.Tensor) -> Any:
        """Return the channels, which images of any size have in common, and whether there is no pixel."""
        return prepared.shape[:-2], len(prepared.shape), 0 in prepared.shape

    @timed
    def preprocess(self, data: list[Any]) -> torch.Tensor | list[torch.Tensor]:  # type: ignore[override]
        """Decode to float32 in [0, 1]: (rows, 3, height, width) for equal sizes, else a list of (3, height, width).

        torchvision's models take both forms; TorchServe's handler supports only the first.

        Raises:
            UnreadableRows: some rows are not images; only for rows that `prepare` has not seen.
        """
        device = input_device(self)
        there = staged(decode_rows(data, self.decode_row), device)
        whole = side_by_side(there) if device.type == "cuda" else None
        if whole is not None:
            return self._in_fractions([whole])[0]
        images = self._in_fractions(there)
        if len({image.shape for image in images}) != 1:
            return images
        if len(images) == 1:
            return images[0][None]
        # One after the other, so that no image is held twice but the one that is copied.
        stacked = images[0].new_empty((len(images), *images[0].shape))
        for index, row in enumerate(data):
            stacked[index] = images[index]
            images[index] = stacked[index]
            if isinstance(row, PreparedRow):
                row.prepared = stacked[index]
        return stacked

    def read_bytes(self, encoded: bytes | bytearray, admit: Callable[[int], None]) -> torch.Tensor:
        """Return an image's pixels: uint8, shape (3, height, width); what a handler's own processing makes of it."""
        image = decode_image(encoded, admit=admit)
        if self.image_processing is not ObjectDetector.image_processing:
            made: torch.Tensor = self.image_processing(image)
            return made
        return torch.from_numpy(np.array(as_rgb(image))).permute(2, 0, 1)

    def _in_fractions(self, images: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return images, or batches, on the device; pixels in [0, 1], as `ToTensor` makes them of bytes on the CPU."""
        full = torch.full((), 255.0, device=self.device)  # a number would be multiplied by, inverted
        return [each.to(torch.float32).div_(full) if each.dtype == torch.uint8 else each for each in images]

    @timed
    def inference(self, data: torch.Tensor | list[torch.Tensor], *args: Any, **kwargs: Any) -> Any:
        with torch.inference_mode():
            return self.model(data, *args, **kwargs)

    @timed
    def postprocess(self, data: Any) -> list[Any]:
        """Return each row's detections with a score of at least `threshold`, or KeyError where one has no name.

        Args:
            data: for each row `boxes`, shape (detections, 4), `labels`, int64, and `scores`, shape (detections,). In a
                scripted model of torchvision a dict of losses precedes them.
        """
        if isinstance(data, tuple):
            data = data[-1]
        rows = fetched(data)
        if not isinstance(rows, list) or not all(isinstance(row, Mapping) and row.keys() >= _MEMBERS for row in rows):
            raise InvalidResult(
                f"The model returns {type(data).__name__}; its handler expects a list with a dict for each image, of"
                " `boxes`, `labels` and `scores`"
            )
        return [self._detections(row) for row in rows]

    def _detections(self, row: dict[str, torch.Tensor]) -> list[dict[str, Any]] | KeyError:
        kept = row["scores"] >= self.threshold
        boxes, labels, scores = (row[key][kept].tolist() for key in ("boxes", "labels", "scores"))
        try:
            return [
                {**map_class_to_label([[box]], self.mapping, [[label]])[0], "score": score}
                for box, label, score in zip(boxes, labels, scores, strict=True)
            ]
        except KeyError as error:  # of a class without a name
            return error
