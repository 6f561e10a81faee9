"""A loaded model: run a batch, and turn whatever happens into one answer for each row."""

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from handlers import wire
from handlers.context import Context
from handlers.errors import PredictionException, UnreadablePayload
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
        )
        entry = load_handler(load.handler, Path(load.model_dir))
        entry.initialize(context)
        return cls(entry, context)

    def run(self, rows: Sequence[wire.Row]) -> list[wire.Answer]:
        """Answer each row, in order. Raises nothing."""
        data = [decode_row(row) for row in rows]
        unreadable = {} if self.own_handle else self._find_unreadable(data)
        good = [index for index in range(len(rows)) if index not in unreadable]
        answers = {
            index: failure(f"{error} (Request {rows[index].id})", 400, "BadRequestException")
            for index, error in unreadable.items()
        }
        if good:
            kept = [rows[index] for index in good]
            ended = self._handle(kept, [data[index] for index in good])
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
        except (Exception, SystemExit) as error:  # noqa: BLE001 - user code may raise anything
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


def _all_failed(rows: Sequence[wire.Row], error: BaseException) -> list[wire.Answer]:
    if isinstance(error, PredictionException):
        code = error.error_code if isinstance(error.error_code, int) and 200 <= error.error_code <= 599 else 500
        return [failure(str(error.message), code) for _ in rows]
    if isinstance(error, UnreadablePayload):
        return [failure(f"{error} (Request {row.id})", 400, "BadRequestException") for row in rows]
    if isinstance(error, MemoryError) or "CUDA" in str(error):
        return [failure(f"Out of resources. {type(error).__name__}: {error} (Request {row.id})", 507) for row in rows]
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return [failure(f"Prediction failed: {what} (Request {row.id})") for row in rows]
