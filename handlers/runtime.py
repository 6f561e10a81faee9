"""A loaded model: run a batch, and turn whatever happens into one answer for each row."""

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handlers import wire
from handlers.context import Context
from handlers.errors import PredictionException, UnreadablePayload, UnreadableRows
from handlers.loader import EntryPoint, load_handler
from handlers.rows import NotSerialisable, decode_row, encode_item, failure, headers_of


def read_model_config(load: wire.Load) -> dict[str, Any]:
    """Read the archive's `model-config.yaml`, as the handler sees it; `{}` if there is none."""
    name = load.manifest.get("model", {}).get("configFile")
    if not name:
        return {}
    import yaml

    document = yaml.safe_load((Path(load.model_dir) / Path(name).name).read_bytes())
    return document if isinstance(document, dict) else {}


class Runtime:
    """One model in one worker.

    Attributes:
        own_handle: the handler brings its own `handle` method, or is a function.
    """

    def __init__(self, entry: EntryPoint, context: Context) -> None:
        self._entry = entry
        self._context = context
        self.own_handle = not _handle_is_ours(entry.instance)

    @classmethod
    def load(cls, load: wire.Load) -> "Runtime":
        """Import the handler and initialize it; errors of its own code pass through."""
        context = Context(
            load.model_name,
            load.model_dir,
            load.manifest,
            load.batch_size,
            load.gpu_id,
            model_yaml_config=read_model_config(load),
            limit_max_image_pixels=os.environ.get("TS_LIMIT_MAX_IMAGE_PIXELS", "true") != "false",
        )
        entry = load_handler(load.handler, Path(load.model_dir))
        entry.initialize(context)
        return cls(entry, context)

    def run(self, rows: Sequence[wire.Row]) -> list[wire.Answer]:
        """Answer each row, in order. Raises nothing."""
        data = [decode_row(row) for row in rows]
        if self.own_handle:
            return self._handle(rows, data)
        return self._handle_readable(rows, data, self._find_unreadable(data))

    def _handle_readable(
        self, rows: Sequence[wire.Row], data: list[Any], unreadable: Mapping[int, UnreadablePayload]
    ) -> list[wire.Answer]:
        """Answer unreadable rows with 400, and run the handler on the others."""
        good = [index for index in range(len(rows)) if index not in unreadable]
        answers = {index: _bad_request(rows[index], error) for index, error in unreadable.items()}
        if good:
            kept, values = [rows[index] for index in good], [data[index] for index in good]
            try:
                ended = self._handle(kept, values)
            except UnreadableRows as error:  # a `preprocess` that changes the rows, and then calls ours
                ended = self._handle_readable(kept, values, error.rows)
            answers.update(zip(good, ended, strict=True))
        return [answers[index] for index in range(len(rows))]

    def _find_unreadable(self, data: list[Any]) -> dict[int, UnreadablePayload]:
        try:
            found: dict[int, UnreadablePayload] = self._entry.instance.prepare(data)
        except (Exception, SystemExit):  # noqa: BLE001 - user code; `handle` will meet it again, and report it
            return {}
        return found

    def _handle(self, rows: Sequence[wire.Row], data: list[Any]) -> list[wire.Answer]:
        self._context.begin_batch([row.id for row in rows], [headers_of(row) for row in rows])
        try:
            items = self._entry.handle(data, self._context)
        except BaseException as error:
            if isinstance(error, UnreadableRows) and not self.own_handle and set(error.rows) <= set(range(len(rows))):
                raise
            traceback.print_exc()
            return _all_failed(rows, error)
        if not isinstance(items, list):
            what = f"the handler returned {type(items).__name__}, and should return a list of {len(rows)}"
            return [failure(f"Invalid model predict output: {what}. (Request {row.id})") for row in rows]
        if len(items) != len(rows):
            what = f"expected {len(rows)}, the handler returned {len(items)}"
            return [failure(f"number of batch response mismatched: {what}. (Request {row.id})") for row in rows]
        return [self._encode(index, row, item) for index, (row, item) in enumerate(zip(rows, items, strict=True))]

    def _encode(self, index: int, row: wire.Row, item: Any) -> wire.Answer:
        assert self._context.request_processor is not None
        try:
            return encode_item(item, self._context.request_processor[index])
        except NotSerialisable as error:
            return failure(f"Unsupported model output data type. {error} (Request {row.id})")


def _handle_is_ours(instance: Any) -> bool:
    base = sys.modules.get("handlers.defaults.base")
    return (
        base is not None and isinstance(instance, base.BaseHandler) and type(instance).handle is base.BaseHandler.handle
    )


def _bad_request(row: wire.Row, error: UnreadablePayload) -> wire.Answer:
    return failure(f"{error} (Request {row.id})", 400, "BadRequestException")


def _in_words(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a user's exception may fail even at this
        return name
    return f"{name}: {text}" if text else name


def _all_failed(rows: Sequence[wire.Row], error: BaseException) -> list[wire.Answer]:
    if isinstance(error, PredictionException):
        code = error.error_code if isinstance(error.error_code, int) and 200 <= error.error_code <= 599 else 500
        return [failure(str(error.message), code) for _ in rows]
    if isinstance(error, UnreadablePayload):
        return [_bad_request(row, error) for row in rows]
    what = _in_words(error)
    if isinstance(error, MemoryError) or "CUDA" in what:
        return [failure(f"Out of resources. {what} (Request {row.id})", 507) for row in rows]
    return [failure(f"Prediction failed: {what} (Request {row.id})") for row in rows]
