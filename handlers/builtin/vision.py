"""`VisionHandler`: images in, one stacked tensor for the model."""

import base64
import functools
import io
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from tsctl.handlers.builtin.base import (
    BaseHandler,
    decode_rows,
    input_device,
    is_prepared,
    lacking,
    payload_of,
    prepare_rows,
)
from tsctl.handlers.builtin.support.decoders import admission
from tsctl.handlers.builtin.support.insights import attributed, captum_attr
from tsctl.handlers.builtin.support.readers import Readers, pin
from tsctl.handlers.names import DEFAULT_OPTIMIZATIONS
from tsctl.handlers.requests.early_answers import early_answer, send, takes_pixels
from tsctl.handlers.requests.excerpt import message_of
from tsctl.handlers.requests.gpu_context import is_machines
from tsctl.handlers.requests.gpu_copies import stacked
from tsctl.handlers.requests.images import decode_image
from tsctl.handlers.requests.preparation import Preparation, read_preparation
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import PredictionException, UnreadablePayload, UnreadableRows
from tsctl.handlers.sdk.loader import prepare_is_ours
from tsctl.handlers.sdk.timer import timed


def example_image() -> bytes:
    """Return a JPEG of 500 × 375 pixels, the same each time: smooth patches under fine noise, as in a photograph."""
    generator = torch.Generator().manual_seed(7)
    patches = torch.randint(0, 256, (12, 16, 3), generator=generator, dtype=torch.uint8)
    image = Image.fromarray(patches.numpy()).resize((500, 375), Image.Resampling.BICUBIC)
    noise = torch.randint(0, 256, (375, 500, 3), generator=generator, dtype=torch.uint8)
    image = Image.blend(image, Image.fromarray(noise.numpy()), 0.15)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


_log = logging.getLogger(__name__)


class VisionHandler(BaseHandler):
    """Decodes each row and stacks the tensors.

    A row is an encoded image (as `data` or `body`), the same in base64, also in JSON (`{"data": …}`, `{"b64": …}`), or
    nested lists of numbers. Subclasses set `image_processing`: PIL image → float32 tensor, all of one shape.

    Attributes:
        least_side: as in `decode_image`, for images that are resized anyway.
        spread: how `prepare` maps over the rows of a batch.
        read_image: reads an image file in place of `decode_image` and `image_processing`; None: these do. Takes the
            file, and `admit` of `decode_image`.
        readers: processes that read images for a worker on a GPU.
        join: makes one tensor on the handler's device of the rows' tensors, as `Staging`; None: they are stacked and
            copied.
        answers_early: whether answers are made of the model's output behind the model, and not by `postprocess`.
        preparation: what `image_processing` does; None for transforms that have no settings.
        preparation_note: what of it the archive says, for the model's author.
    """

    image_processing: Any
    # Of the class: a handler's own `__init__` may not call ours, as that of TorchServe's example of micro-batches.
    least_side: int | None = None
    spread: Callable[..., Iterable[Any]] = map
    read_image: Callable[[bytes | bytearray, Callable[[int], None]], torch.Tensor] | None = None
    join: Callable[..., torch.Tensor] | None = None
    readers: Readers | None = None
    answers_early: bool = False
    preparation: Preparation | None = None
    preparation_note = ""
    _names: dict[str, str] | None = None

    def initialize(self, context: Context) -> None:
        if not context.system_properties.get("limit_max_image_pixels", True):
            Image.MAX_IMAGE_PIXELS = None  # the operator expects images that Pillow rejects as decompression bombs
        self._read_preparation(context)
        gpu = context.system_properties.get("gpu_id")
        if gpu is not None:  # after that: they inherit it
            self.readers = self._start_readers(context.system_properties["batch_size"], int(gpu))
        super().initialize(context)
        self.answers_early = self.device.type == "cuda" and self._is_ours

    @property
    def _is_ours(self) -> bool:
        """Whether this is the very class of ours, all of whose stages are known."""
        return (type(self).__module__, type(self).__qualname__) in DEFAULT_OPTIMIZATIONS

    def _load_names(self, model_dir: Path) -> dict[str, Any] | None:
        return self._names or super()._load_names(model_dir)

    def _read_preparation(self, context: Context) -> None:
        """Prepare images as the archive says, unless the handler has transforms of its own."""
        if self.preparation is None:
            return
        from tsctl.handlers.builtin.support.pixels import usual  # with torchvision, which not every handler needs

        if self.image_processing is not usual(self.preparation):
            return
        prepared = read_preparation(Path(context.system_properties["model_dir"]), context.model_yaml_config)
        self.preparation, self.image_processing = prepared.how, usual(prepared.how)
        self.preparation_note, self._names = prepared.note, prepared.classes

    def _start_readers(self, rows: int, gpu: int) -> Readers | None:
        """Start the processes that read images, which must be there before this one calls CUDA.

        Returns:
            None for a handler that does not read images as they do by default, and where none can be started.
        """
        if not self._is_ours or torch.cuda.is_initialized():
            return None
        assert self.preparation is not None  # of all that have default optimisations
        read = functools.partial(_read_apart, self.preparation)
        try:
            pinned = functools.partial(pin, gpu=gpu)
            return Readers(read, torch.get_num_threads(), (3, *self.preparation.crop), rows, pinned)
        except OSError as error:
            _log.warning("the worker reads images by itself: no process for that can be started: %s", error)
            return None

    def decode_row(self, row: Any) -> torch.Tensor:
        """Return one row's tensor: the result of `image_processing`, or float32 from nested lists.

        Raises:
            UnreadablePayload: the row is neither an image nor an array of numbers.
        """
        return self._decode_within(row, None)

    def _decode_within(self, row: Any, within: Callable[[int], None] | None) -> torch.Tensor:
        """Do as `decode_row`.

        Args:
            within: called with the number of an image's pixels before they are decoded; may raise TooManyPixels.

        Raises:
            UnreadablePayload: the row is neither an image nor an array of numbers.
            TooManyPixels: `within` raised it.
        """
        payload = payload_of(row)
        if payload is None:
            raise lacking(row, "the image as it is")
        if isinstance(payload, dict) and list(payload) == ["b64"]:
            payload = payload["b64"]
        if isinstance(payload, str):
            try:
                # Without white space: tools that write base64 break its lines.
                payload = base64.b64decode("".join(payload.split()), validate=True)
            except ValueError as error:
                raise UnreadablePayload(f"The request's text is not a base64-encoded image: {error}") from error
        if isinstance(payload, (bytes, bytearray)):
            if not hasattr(self, "image_processing"):
                handler = type(self).__name__
                raise UnreadablePayload(
                    f"The model's handler, {handler}, has no `image_processing`, and so takes no image files: send the"
                    " array of numbers that the model takes, in JSON"
                )
            with admission(within) as admit:
                if self.read_image is not None:
                    return self.read_image(payload, admit)
                image = decode_image(payload, least_side=self.least_side, admit=admit)
                tensor: torch.Tensor = self.image_processing(image)
                del image  # before others are admitted
            return tensor
        try:
            tensor = torch.tensor(payload, dtype=torch.float32)
            if not tensor.ndim:
                raise ValueError("it is a single number")
            return tensor
        except (TypeError, ValueError, OverflowError, RuntimeError) as error:
            raise UnreadablePayload(f"The request is neither an image nor an array of numbers: {error}") from error

    def prepare(self, data: list[Any]) -> dict[int, UnreadablePayload]:
        """Decode as many rows as have the pixels of one image, as of an envelope's instances; the others stay."""
        if type(self).preprocess is not VisionHandler.preprocess:
            return {}
        shape, most = self._shape_of_arrays, Image.MAX_IMAGE_PIXELS
        rows = data if shape is None or most is None else data[: max(1, int(most) // (shape[1] * shape[2]))]
        unreadable = prepare_rows(rows, self.decode_row, self.spread)
        data[: len(rows)] = rows
        return unreadable

    @timed
    def preprocess(self, data: list[Any]) -> torch.Tensor:
        """Decode and stack: shape (rows, channels, height, width) for images, on `input_device`.

        Raises:
            UnreadableRows: some rows are not images; only for rows that `prepare` has not seen.
        """
        rows = decode_rows(data, self.decode_row)
        if self.join is None:
            return stacked(rows, input_device(self))
        return self.join(rows, as_pixels=takes_pixels(self.model))

    @property
    def _shape_of_arrays(self) -> tuple[int, ...] | None:
        """The shape of each image's tensor, -1 for any length; None where a handler's own transforms decide."""
        if self.preparation is None:
            return None
        from tsctl.handlers.builtin.support.pixels import prepares  # with torchvision, which not every handler needs

        return (3, *self.preparation.crop) if prepares(self.image_processing, self.preparation) else None

    def _run_stages(self, data: list[Any]) -> list[Any]:
        """Run the stages on the rows that are decoded, then on those of the others that fit, until there is none left.

        Raises:
            UnreadableRows: some rows are not images; only for rows that `prepare` has not seen.
        """
        rows, items = list(data), dict[int, Any]()
        left = list(range(len(rows)))
        while left:
            group = [row for row in left if is_prepared(rows[row])]
            if not group:
                group = self._prepare_group(rows, left, items)
            if len(group) == len(rows):
                return super()._run_stages(rows if isinstance(data, list) else data)
            # Beside rows that are decoded, each of the others meets its own error.
            for part in [group] if all(is_prepared(rows[row]) for row in group) else [[row] for row in group]:
                answers = self._run_stages_of(super()._run_stages, rows, part)
                items.update(zip(part, answers, strict=True))
            for row in group:
                if is_prepared(rows[row]):
                    rows[row].prepared = None  # its pixels make room for the others'
            left = [row for row in left if row not in items]
        return [items[row] for row in range(len(rows))]

    def _prepare_group(self, rows: list[Any], left: list[int], items: dict[int, Any]) -> list[int]:
        """Decode those of the rows that fit, and return them; the reasons of unreadable ones become items."""
        found = [rows[row] for row in left]
        unreadable = {left[at]: why for at, why in self.prepare(found).items()} if prepare_is_ours(self) else {}
        if unreadable and not items:
            raise UnreadableRows(unreadable)
        items.update(unreadable)
        for row, made in zip(left, found, strict=True):
            rows[row] = made
        fitting = [row for row in left if is_prepared(rows[row])]
        return fitting or [row for row in left if row not in unreadable]  # the latter where a `prepare` decodes nothing

    def _run_stages_alike(self, data: list[Any]) -> list[Any]:
        try:
            return super()._run_stages_alike(data)
        except Exception as error:
            refused = self._refusal(data[0], error)
            if refused is None:
                raise
            return [refused] * len(data)

    def explain_handle(self, data_preprocess: Any, raw_data: list[Any]) -> Any:
        try:
            return super().explain_handle(data_preprocess, raw_data)
        except Exception as error:
            refused = self._refusal(raw_data[0], error)
            if refused is None:
                raise
            raise refused from error

    def _refusal(self, row: Any, error: Exception) -> UnreadablePayload | None:
        """Return why a row is refused for which the model has failed: it is an array of another shape than images'."""
        if isinstance(error, (UnreadablePayload, PredictionException)):
            return None
        expected = self._shape_of_arrays
        if expected is None or not is_prepared(row):
            return None
        shape = [*row.prepared.shape]
        if len(shape) == 3 and all(
            given == wanted or wanted < 0 < given for given, wanted in zip(shape, expected, strict=True)
        ):
            return None
        if is_machines(error):  # last: it may ask the GPU
            return None
        takes = ", ".join("any" if each < 0 else str(each) for each in expected)
        return UnreadablePayload(
            f"The request's array has the shape {shape}, for which the model fails: send an image, or an array of shape"
            f" [{takes}] (channels, height, width). The model's error: {message_of(error)}"
        )

    def _call_network(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        output = super()._call_network(data, *args, **kwargs)
        if (answer := early_answer(self)) is not None:
            with torch.inference_mode():
                send(self.model, output, answer)
        return output

    def example(self) -> bytes:
        """Return a synthetic row payload, for checks that need one."""
        return example_image()

    @functools.cached_property
    def ig(self) -> Any:
        """captum's IntegratedGradients of the model, under TorchServe's name."""
        return captum_attr().IntegratedGradients(self.model)

    def get_insights(self, tensor_data: torch.Tensor, raw_data: Any, target: Any = 0) -> Any:  # noqa: ARG002
        """Attribute the score of class `target` to the values of the image.

        Args:
            tensor_data: floating point, shape (1, channels, height, width).

        Returns:
            Nested lists of that shape: integrated gradients (Sundararajan et al., ICML 2017) over 15 steps, from zero.
        """
        return attributed(self.ig, tensor_data, target, n_steps=15).tolist()


def _read_apart(how: Preparation, encoded: bytes, least_side: int | None) -> torch.Tensor:
    from tsctl.handlers.builtin.support.pixels import pixels_of

    with admission() as admit:
        return pixels_of(encoded, admit, least_side, how)
