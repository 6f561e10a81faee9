"""A loaded model: run a batch, and turn every outcome into one answer per row."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsctl.handlers import wire
from tsctl.handlers.compiling import mypyc_attr
from tsctl.handlers.envelopes.entry import enveloped
from tsctl.handlers.optimize.selected_steps import chosen
from tsctl.handlers.requests.gpu_context import GpuContext
from tsctl.handlers.requests.kinds import Kind, kind_of
from tsctl.handlers.requests.out_of_memory import is_out_of_memory, make_room
from tsctl.handlers.requests.rows import decode_rows, encode_item, headers_of, in_memory, items_of
from tsctl.handlers.runtime.failures import bad_request, failed, failed_together, tell_failure
from tsctl.handlers.sdk.batches import FileBatches
from tsctl.handlers.sdk.built_in import check_inputs, declaration_of_model, declaration_under
from tsctl.handlers.sdk.context import Context, decodes
from tsctl.handlers.sdk.errors import (
    InvalidResult,
    NotSerialisable,
    PredictionException,
    UnreadablePayload,
    UnreadableRows,
)
from tsctl.handlers.sdk.gpu import check_after_load, on_the_cpu
from tsctl.handlers.sdk.loader import EntryPoint, load_handler
from tsctl.handlers.sdk.request_processor import RequestProcessor
from tsctl.handlers.tensor_heads import InferHead
from tsctl.handlers.tensors.views import Views

if TYPE_CHECKING:
    from tsctl.handlers.optimize.packages.side_by_side import Apart


def read_model_config(load: wire.Load) -> dict[str, Any]:
    """Read the archive's `model-config.yaml`, as the handler sees it; `{}` if there is none."""
    name = load.manifest.get("model", {}).get("configFile")
    if not name:
        return {}
    import yaml

    document = yaml.safe_load((Path(load.model_dir) / Path(name).name).read_bytes())
    return document if isinstance(document, dict) else {}


SendPieces = Callable[[list[tuple[int, wire.Answer]]], None]


def no_pieces(pieces: list[tuple[int, wire.Answer]]) -> None:
    """Discard pieces."""


class BatchPieces:
    """Sends pieces of the rows' responses of one batch: a thread that outlives the batch must not answer the next one.

    Args:
        encode: returns the answer to a row, given its status and headers, the row and the item.
        processors: the rows' status and headers.
        numbers: the rows' indices in the original batch.

    Attributes:
        send: sends them; replaced where the rows run again.
        sent: there was a piece.
    """

    def __init__(
        self,
        encode: Callable[[RequestProcessor, wire.Row, Any], wire.Answer],
        send: SendPieces,
        processors: Sequence[RequestProcessor],
        rows: Sequence[wire.Row],
        numbers: Sequence[int],
    ) -> None:
        self.send = send
        self.sent = False
        self._encode = encode
        self._processors = processors
        self._rows = rows
        self._numbers = numbers

    def __call__(self, items: Sequence[Any], places: Sequence[int] | None = None) -> None:
        self.sent = True
        rows, numbers, processors, encode = self._rows, self._numbers, self._processors, self._encode
        where = range(len(rows)) if places is None else places
        pairs = zip(where, in_memory(list(items)), strict=True)
        self.send([(numbers[place], encode(processors[place], rows[place], item)) for place, item in pairs])


SHARE = 0.1  # of a worker's time
SAVED = 1.0  # seconds a new worker starts with, and the most that idle time can accumulate


class Allowance:
    """After a handler raised for a batch, its rows run again one by one, so that only the faulty rows fail.

    Exceptions: errors that a handler raises on purpose stand, and the reruns delay other batches. Reruns therefore take
    at most a tenth of a worker's time; beyond that limit a batch fails whole.

    Where memory does not suffice for a batch, its halves run instead, and theirs, down to single rows: in at most about
    three times the batch's own time, and seldom, as the daemon learns of it. So that limit is not theirs.

    The time budget for running single rows. Times are seconds, on any one monotonic clock.

    The budget grows as time passes. A batch's reruns start if any budget is left and are then finished; an overrun must
    be earned back before the next. The reruns never take more than `saved`, plus `share` of the time, plus one batch.
    """

    def __init__(self, now: float, share: float = SHARE, saved: float = SAVED) -> None:
        self._share = share
        self._saved = saved
        self._left = saved
        self._at = now

    def __repr__(self) -> str:
        return f"<Allowance {self._left:g} s at {self._at:g}>"

    def left(self, now: float) -> float:
        """Return the seconds that may be spent; zero or less if the budget is used up."""
        return min(self._saved, self._left + self._share * (now - self._at))

    def spend(self, began: float, ended: float) -> None:
        """Charge the time during which rows ran alone, from `began` to `ended`."""
        self._left = self.left(ended) - (ended - began)
        self._at = ended


def may_isolate(error: BaseException, rows: Sequence[RequestProcessor]) -> bool:
    """Return whether rows may run alone after the handler raised for all of them.

    Not after a deliberate error (a PredictionException, or a row's status was set), nor a result of the wrong length,
    which is no row's fault, nor when the handler exited or was interrupted.
    """
    kind = type(error)  # an exception's `__class__`, which `isinstance` reads, may raise
    if not issubclass(kind, Exception) or issubclass(kind, (PredictionException, InvalidResult)):
        return False
    return not any(row.status_was_set for row in rows)


@mypyc_attr(allow_interpreted_subclasses=True)
class Runtime:
    """One model in one worker.

    Attributes:
        own_handle: the handler defines its own `handle` method, or is a function.
        config: the archive's `model-config.yaml`.
        declared: the inputs of a typed or built-in handler; None for any other, and for one that gets arrays.
        notes: sentences for the model's author.
        most_rows: that the model takes at a time; 0 for any number.
        isolation: the isolation of the last batch if its rows ran alone, or in halves, else None.
        too_large: of the last batch, the fewest rows that did not fit into memory together; 0 for none.
        failures: the first exceptions of the last batch that became answers.
        views: the arrays of running requests, and those that the handler keeps.
        gpu: told of each exception of the handler: some leave a process that must end.

    Args:
        isolate: whether rows run alone after the handler raised for their batch; None: only if `handle` is ours.
    """

    def __init__(self, entry: EntryPoint, context: Context, isolate: bool | None = None) -> None:
        self._entry = entry
        self._context = context
        self.config = context.model_yaml_config
        self._model_dir = str(context.system_properties["model_dir"])
        self._send: SendPieces = no_pieces
        self._tally = context.metrics.tally
        self._labels = (("ModelName", context.model_name), ("Level", "Model"))  # of our own metric
        self._handler_time = 0.0  # seconds in the handler's own code, for the running batch
        self.own_handle = entry.own_handle
        self.isolation: wire.Isolation | None = None
        self.too_large = 0
        self._unfit = 0  # rows of the running batch for which memory did not suffice even alone
        self._crowded = False  # memory did not suffice for a call of the running batch
        self.failures: list[wire.HandlerFailure] = []
        self.declared = entry.declared
        self.notes = entry.notes
        self.most_rows = 0
        self._read = entry.read or partial(decode_rows, decode=decodes())
        self._may_isolate = not entry.own_handle if isolate is None else isolate
        self._isolate = False  # for the running batch
        self._allowance = Allowance(time.perf_counter())
        self.views = Views()
        self.gpu = GpuContext()
        self._outputs = self.config.get("outputs") or _outputs_of(entry.declared)  # as the daemon has checked them

    @classmethod
    def load(cls, load: wire.Load) -> "Runtime":
        """Import the handler and initialize it; errors of the handler's code propagate.

        Raises:
            HandlerError: torch cannot use the GPU, and the model has no `deviceType: auto`.
        """
        gpu = load.gpu_id
        note = on_the_cpu(gpu) if gpu is not None and load.device_type == "auto" else ""
        context = Context(
            load.model_name,
            load.model_dir,
            load.manifest,
            load.batch_size,
            None if note else gpu,
            model_yaml_config=read_model_config(load),
            limit_max_image_pixels=os.environ.get("TS_LIMIT_MAX_IMAGE_PIXELS", "true") != "false",
        )
        context.metrics.declare(load.metrics)
        entry = load_handler(load.handler, Path(load.model_dir), _typed_entry)
        entry = _as_declared(_awaited(entry, load.mode), context.model_yaml_config.get("inputs"))
        entry.initialize(context)
        if note:
            entry.notes.append(note)
        elif gpu is not None:
            check_after_load(gpu)
        if entry.declared is not None and entry.declared.built_in and not context.model_yaml_config.get("inputs"):
            inputs, outputs = (getattr(entry.instance, name, ()) for name in ("own_inputs", "own_outputs"))
            entry.declared = declaration_of_model(entry.declared, inputs, outputs)
        made = cls(entry, context, load.isolate)
        takes = getattr(entry.instance, "file_batches", None)
        file = load.manifest.get("model", {}).get("serializedFile") or load.model_name
        if isinstance(takes, FileBatches) and (told := takes.note(Path(str(file)).name)):
            made.notes.append(told)
            made.most_rows = takes.most
        if isinstance(told := getattr(entry.instance, "preparation_note", ""), str) and told:
            made.notes.append(told)
        return made

    def set_batch_size(self, most: int) -> None:
        """Update the handler's batch size; values that `initialize` derived from the old one stay."""
        self._context.system_properties["batch_size"] = most

    def obey(self, message: wire.ToWorker, use_threads: Callable[[int], None]) -> None:
        """Obey a message that is no batch: another number of threads, or of rows at most."""
        if isinstance(message, wire.Threads):
            use_threads(message.count)
        elif isinstance(message, wire.BatchSize):
            self.set_batch_size(message.most)

    @property
    def handler(self) -> Any:
        """The handler object; None if the entry point is a function."""
        return self._entry.instance

    def beside(self) -> "Runtime":
        """Return a Runtime for concurrent batches, with the same handler and its own context."""
        other = Runtime(self._entry, self._context.beside(), self._may_isolate)
        other._allowance = self._allowance  # shared by the worker; two threads may spend the same second
        other.views = self.views
        other.gpu = self.gpu
        return other

    def optimize(
        self,
        asked: Sequence[str] | None,
        model_dir: Path,
        batch_size: int,
        apart: "Apart | None" = None,
        beside: "Apart | None" = None,
    ) -> list[wire.Optimized]:
        """Optimise the model, as asked or by the handler's defaults; see handlers/optimize.

        Args:
            apart: starts processes in which optimisations are checked; None: they are checked in this one.
            beside: starts processes that compile; None: all is compiled in this one.

        Raises:
            HandlerError: an optimisation asked for by name cannot be applied.
        """
        if (self._entry.instance is None and not asked) or not chosen(asked, type(self._entry.instance)):
            return []  # without importing torch, which a handler may not need
        from tsctl.handlers.optimize.apply import optimize

        self._context.begin_batch([f"optimize-{row}" for row in range(batch_size)], [{}] * batch_size)
        try:
            told = optimize(self._entry.instance, asked, model_dir, self.config, batch_size, apart=apart, beside=beside)
        finally:
            self._context.end_batch()
        if self._context.system_properties["gpu_id"] is not None:
            make_room(collect=True)  # of what was compared: other workers of the GPU, and its budget, can have it
        return told

    def run(self, rows: Sequence[wire.Row], send: SendPieces = no_pieces, *, isolate: bool = True) -> list[wire.Answer]:
        """Run a batch; return one answer per row, in order, whatever the handler does.

        Args:
            send: takes (row, piece) pairs that the handler sends before it returns, and an empty list before each row
                that runs alone.
            isolate: False forbids running rows alone.
        """
        self._send = send
        self._isolate, self.isolation = isolate and self._may_isolate, None
        self._handler_time = 0.0
        self.too_large = self._unfit = 0
        self._crowded = False
        if self.failures:
            self.failures = []
        try:
            data, unreadable = self._read_rows(rows)
            answers = self._handle_readable(rows, data, unreadable, range(len(rows)))
        except BaseException as error:  # noqa: BLE001 - of objects that the handler put in place of ours
            answers = self.fail(rows, error)
        self._tally.add("gauge", "HandlerTime", "ms", self._labels, self._handler_time * 1000)  # no line in the log
        return answers

    def fail(self, rows: Sequence[wire.Row], error: BaseException) -> list[wire.Answer]:
        """Return the answers to all rows of a call that could not be finished."""
        self._note_failure(range(len(rows)), self._tell(error))
        return failed_together(rows, error)

    def _tell(self, error: BaseException) -> str:
        """Write a traceback to the model's log, and return it; a worker whose GPU is lost with it ends here."""
        told = tell_failure(error, self._model_dir)
        self.gpu.check(error)
        return told

    def _read_rows(self, rows: Sequence[wire.Row]) -> tuple[list[Any], dict[int, UnreadablePayload]]:
        """Return what the handler finds in `data`, and the unreadable rows among these."""
        for row in rows:
            if row.infer is not None:
                break
        else:
            data = self._read(rows)
            return data, self._find_unreadable(rows, data)
        from tsctl.handlers.tensors.rows import read_rows  # with numpy, which not every handler needs

        data, refused = read_rows(rows, self._read, self.views, typed=self._entry.read is not None)
        return data, self._find_unreadable(rows, data) | refused

    def close(self) -> None:
        """End what the handler's entry point runs between batches."""
        self._entry.close()

    def kept(self, batch: wire.Predict) -> list[int]:
        """Return the offsets of a finished batch's values, and of earlier ones, that the handler still uses."""
        return self.views.end_batch(batch) if self.views.watches else []

    def measured(self) -> list[wire.Measurement]:
        """Return the handler's measurements since the last call."""
        return self._tally.take_measurements()

    def _handle_readable(
        self,
        rows: Sequence[wire.Row],
        data: list[Any],
        unreadable: Mapping[int, UnreadablePayload],
        numbers: Sequence[int],
    ) -> list[wire.Answer]:
        """Answer unreadable rows with 400, and run the handler on the others.

        Args:
            numbers: the rows' indices in the original batch.
        """
        if rows and not unreadable:  # nearly always: saves 1.3 µs a row
            try:
                return self._handle(rows, data, numbers)
            except UnreadableRows as error:  # from a `preprocess` that changes the rows, then calls ours
                return self._handle_readable(rows, data, error.rows, numbers)
        good = [index for index in range(len(rows)) if index not in unreadable]
        answers = {index: bad_request(rows[index], error) for index, error in unreadable.items()}
        if good:
            kept, values = [rows[index] for index in good], [data[index] for index in good]
            places = [numbers[index] for index in good]
            ended = self._handle_readable(kept, values, {}, places)
            answers.update(zip(good, ended, strict=True))
        return [answers[index] for index in range(len(rows))]

    def _find_unreadable(self, rows: Sequence[wire.Row], data: list[Any]) -> dict[int, UnreadablePayload]:
        if not self._entry.checks:
            return {}
        began = time.perf_counter()
        try:
            found = self._entry.prepare(data)
        except BaseException:  # noqa: BLE001 - user code; `handle` will meet and report the error
            return {}
        finally:
            self._handler_time += time.perf_counter() - began
        # Describe requests carry no payload.
        return {index: why for index, why in found.items() if kind_of(dict(rows[index].headers)) is not Kind.DESCRIBE}

    def _handle(self, rows: Sequence[wire.Row], data: list[Any], numbers: Sequence[int]) -> list[wire.Answer]:
        self._context.begin_batch([row.id for row in rows], [partial(headers_of, row) for row in rows])
        wants_bytes = False
        for index, row in enumerate(rows):
            infer = row.infer
            if infer is None:
                continue
            if isinstance(infer, InferHead):
                self._context.request_parameters[index] = infer.parameters
            elif infer.document:
                wants_bytes = True

        processors = self._context.request_processor or []
        pieces = self._context.send_pieces = BatchPieces(self._encode, self._send, processors, rows, numbers)
        began = time.perf_counter()
        crowded = False
        answers: list[wire.Answer] | None = None
        try:
            items = in_memory(items_of(self._entry.handle(data, self._context), len(rows)))
        except InvalidResult as error:
            self._tell(error)
            return [failed(row, error) for row in rows]
        except BaseException as error:
            if not self.own_handle and issubclass(type(error), UnreadableRows) and _are_rows(error, len(rows)):
                raise
            told = self._tell(error)
            crowded = is_out_of_memory(error)
            again = len(rows) > 1 and self._isolate and not pieces.sent and may_isolate(error, processors)
            if not again or self.gpu.broken or not (crowded or self._allowance.left(time.perf_counter()) > 0):
                self._note_failure(numbers, told)
                answers = failed_together(rows, error)
            items = None
        finally:
            self._handler_time += time.perf_counter() - began
        if items is None:
            # Outside the `except` block, so that the exception and the memory of its frames are freed.
            if crowded:
                make_room(collect=self._crowded)  # once more: something else holds the memory
                self._crowded = True
            if answers is not None:
                if crowded:
                    self._note_crowded(len(rows))
                return answers
            pieces.send = no_pieces  # a thread left by the failed batch must not answer rows that run again
            return self._handle_halves(rows, numbers) if crowded else self._handle_alone(rows, numbers)
        answers = [
            self._encode(processor, row, item) for processor, row, item in zip(processors, rows, items, strict=True)
        ]
        failed_items = [item for item, answer in zip(items, answers, strict=True) if answer.error]
        for raised in {id(item): item for item in failed_items if is_exception(item)}.values():
            if not isinstance(raised, (UnreadablePayload, NotSerialisable)):
                rows_of = [number for number, item in zip(numbers, items, strict=True) if item is raised]
                self._note_failure(rows_of, self._tell(raised))
        if not wants_bytes or pieces.sent:
            return answers
        from tsctl.handlers.tensors.rows import as_asked

        return as_asked(rows, answers)

    def _note_failure(self, numbers: Sequence[int], traceback: str) -> None:
        if len(self.failures) < wire.MOST_FAILURES:
            self.failures.append(wire.HandlerFailure(list(numbers), traceback))

    def _handle_alone(self, rows: Sequence[wire.Row], numbers: Sequence[int]) -> list[wire.Answer]:
        """Run the handler on each row as if the row had arrived alone."""
        began = time.perf_counter()
        answers: list[wire.Answer] = []
        for row, number in zip(rows, numbers, strict=True):
            self._send([])  # the batch is still running
            data, unreadable = self._read_rows([row])  # again: the handler may have changed its input
            answers += self._handle_readable([row], data, unreadable, [number])
        ended = time.perf_counter()
        self._allowance.spend(began, ended)
        self.isolation = wire.Isolation(sum(bool(answer.error) for answer in answers), ended - began)
        return answers

    def _handle_halves(self, rows: Sequence[wire.Row], numbers: Sequence[int]) -> list[wire.Answer]:
        """Run the handler on each half of rows for which memory did not suffice together."""
        began, unfit = time.perf_counter(), self._unfit
        half = (len(rows) + 1) // 2
        answers: list[wire.Answer] = []
        for part in (slice(half), slice(half, len(rows))):
            self._send([])  # the batch is still running
            data, unreadable = self._read_rows(rows[part])
            answers += self._handle_readable(rows[part], data, unreadable, numbers[part])
        if self._unfit == unfit:  # otherwise one row may be all that is too large
            self._note_crowded(len(rows))
        failed_rows = sum(bool(answer.error) for answer in answers)
        self.isolation = wire.Isolation(failed_rows, time.perf_counter() - began)
        return answers

    def _note_crowded(self, rows: int) -> None:
        """Note that memory did not suffice for so many rows together."""
        if rows == 1:
            self._unfit += 1
        else:
            self.too_large = min(self.too_large or rows, rows)

    def _encode(self, processor: RequestProcessor, row: wire.Row, item: Any) -> wire.Answer:
        """Return the answer to one row. An item that is an exception, or cannot be encoded, fails only its own row."""
        if is_exception(item):
            return failed(row, item)
        try:
            infer = row.infer
            if infer is None or not isinstance(infer, InferHead):
                return encode_item(item, processor)
            from tsctl.handlers.tensors.outputs import encode_outputs

            return encode_outputs(item, infer, self._outputs, self._context, processor)
        except (NotSerialisable, InvalidResult) as error:
            return failed(row, error)
        except BaseException as error:  # noqa: BLE001 - of the item's class, or of objects that the handler set
            self._tell(error)
            return failed(row, error)


def _outputs_of(declared: wire.Declared | None) -> list[dict[str, Any]]:
    """Return the outputs that the model's file tells, as model-config.yaml would declare them."""
    told = () if declared is None else declared.outputs
    return [{"name": each.name, "datatype": each.datatype, "shape": each.shape} for each in told]


def _are_rows(error: Any, rows: int) -> bool:
    """Return whether the unreadable rows that an error names are rows of the batch."""
    return bool(error.rows) and set(error.rows) <= set(range(rows))


def is_exception(item: object) -> bool:
    """Return whether an item is an exception; an instance's `__class__`, which `isinstance` reads, may be its own."""
    return issubclass(type(item), BaseException)


def _awaited(entry: EntryPoint, mode: wire.Mode) -> EntryPoint:
    """Return an entry point that awaits a handler's coroutines; a typed one does so itself."""
    initialize = getattr(entry.instance, "initialize", None)
    if entry.read is not None or not (iscoroutinefunction(entry.handle) or iscoroutinefunction(initialize)):
        return entry
    from tsctl.handlers.runtime.coroutines import AwaitedEntryPoint  # with asyncio, which few handlers need: 20 ms

    return AwaitedEntryPoint(entry, mode)


def _as_declared(entry: EntryPoint, inputs: Sequence[Mapping[str, Any]] | None) -> EntryPoint:
    """Return an entry point that takes what its archive declares; a contradiction raises HandlerError.

    The hints of a typed handler, and declared inputs, say how a body is read: then there is no envelope.
    """
    declared = entry.declared
    if not inputs:
        if declared is None or declared.built_in:
            name = os.environ.get("TS_SERVICE_ENVELOPE", "")
            return enveloped(entry, name) if name else entry
    elif declared is not None and declared.built_in:
        entry.declared = declaration_under(declared, inputs)
    elif declared is not None:
        check_inputs(declared, inputs)
    return entry


def _typed_entry(function: Callable[..., Any], instance: Any) -> EntryPoint | None:
    from tsctl.handlers.typed.entry import typed_entry  # only where there are type hints: 10 ms

    return typed_entry(function, instance)
