"""The entry point of a typed handler: decode the rows, call the function, encode its answers."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from tsctl.handlers.requests.excerpt import message_of
from tsctl.handlers.requests.kinds import Kind, kinds_of
from tsctl.handlers.requests.pixels import Pixels
from tsctl.handlers.requests.rows import in_memory, is_array, wanted_type
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import (
    HandlerError,
    NotSerialisable,
    PredictionException,
    TooManyPixels,
    UnreadablePayload,
)
from tsctl.handlers.sdk.gpu import device_of
from tsctl.handlers.sdk.loader import EntryPoint
from tsctl.handlers.sdk.request_processor import RequestProcessor
from tsctl.handlers.typed.annotations import written
from tsctl.handlers.typed.answers import Promise, check_batch, encode_answer, encode_piece
from tsctl.handlers.typed.body import Part, RequestBody, check_names, parts_of, read_rows
from tsctl.handlers.typed.decoders import decoder_of
from tsctl.handlers.typed.instances import Instances, instances_of, parts_of_instance, predictions
from tsctl.handlers.typed.litserve import as_litserve_calls, has_litserves_form
from tsctl.handlers.typed.pieces import END, send_batch, stream_rows
from tsctl.handlers.typed.signature import Signature, signature_of
from tsctl.handlers.wire import INSTANCES

Values = dict[str, Any]  # parameter → value, of one row


def typed_entry(function: Callable[..., Any], instance: Any = None) -> EntryPoint | None:
    """Return the entry point of a typed function or bound method; None if it is not typed.

    Args:
        instance: the object whose method the function is; its `setup` or `load` runs once per worker.

    Raises:
        HandlerError: the type hints cannot be used, or `batch_size` is not a whole number from 1.
    """
    if getattr(function, "__name__", "") == "predict" and has_litserves_form(instance):
        function = as_litserve_calls(instance)
    signature = signature_of(function)
    if signature is None:
        return None
    return TypedEntryPoint(function, instance, signature, _batch_size(function, instance))


class TypedEntryPoint(EntryPoint):
    """A typed function as the runtime calls it."""

    def __init__(self, function: Callable[..., Any], instance: Any, signature: Signature, batch_size: int) -> None:
        super().__init__(instance, self.answer)
        self.own_handle = self.checks = True
        self.read = read_rows
        self._declared = self.declared = signature.declared(batch_size)
        if signature.batches and signature.returns in (str, bytes, int, float, bool, dict):
            self.notes.append(
                f"`{signature.function}` takes a batch and is to return {written(signature.returns)}; the answer to a"
                f" batch is a list, with one item for each request: `-> list[{written(signature.returns)}]`"
            )
        self.notes.extend([each.single_number for each in signature.arguments if each.single_number])
        self._function = function
        self._signature = signature
        self._promise = Promise(signature)
        self._may_lack = any(each.has_default for each in signature.arguments)
        kinds = {each.target.kind for each in signature.arguments}
        self._images, self._sounds = "image" in kinds, "audio" in kinds
        self._bounded = self._images or self._sounds
        self._tensors = [each.name for each in signature.arguments if each.target.kind == "tensor"]
        self._to_gpu: Callable[[Any], Any] | None = None  # moves the tensors of a batch before the call
        self._pixels = Pixels()
        self._decoders = {each.name: decoder_of(each, self._pixels) for each in signature.arguments}
        self._has_instances = False  # a request has had some, ever: nearly no handler is asked so
        self._loop: Any = None

    def initialize(self, context: Context) -> None:
        """Run `initialize`, `setup` or `load` of the handler's class, whichever there is.

        Where a worker with a GPU finds one in `device` of the class then, tensors of a batch go there together, unless
        they are large.
        """
        if self._images and context.system_properties.get("limit_max_image_pixels", True):
            from PIL import Image

            # Handlers set it, also to 1e9, which is a float; read as an attribute, compiled code wants an integer.
            self._pixels.most = getattr(Image, "MAX_IMAGE_PIXELS", None)
        elif self._sounds:
            from tsctl.handlers.requests.audio import Audio

            self._pixels.most = Audio.MAX_SAMPLES
        for name in ("initialize", "setup", "load"):
            method = getattr(self.instance, name, None)
            if callable(method):
                made = method(*_arguments_of(method, context))
                if inspect.iscoroutine(made):
                    self._event_loop().run(made)
        if self._tensors and context.system_properties.get("gpu_id") is not None:
            self._to_gpu = _to_gpu_of(self.instance)

    def prepare(self, data: list[Any]) -> dict[int, UnreadablePayload]:
        """Replace each body in place by its values; return the unreadable ones.

        Bodies whose images or sounds do not fit beside those before them stay, for `answer`; so do those for which code
        of a parameter's type has a bug.
        """
        unreadable = {}
        self._pixels.begin_batch()
        for index, body in enumerate(data):
            if isinstance(body, RequestBody):
                try:
                    data[index] = self._decode(body)
                except UnreadablePayload as error:
                    unreadable[index] = error
                except MemoryError:
                    raise
                except Exception:  # noqa: BLE001 - TooManyPixels, or of user code
                    continue
        return unreadable

    def answer(self, data: list[Any], context: Context) -> list[Any]:
        """Return the encoded answer of each row, or an exception in its place."""
        kinds = kinds_of(context, len(data))
        if kinds.count(Kind.PREDICT) == len(kinds):  # nearly always
            items = self._predict(range(len(data)), data, context)
        else:
            rows = [index for index, kind in enumerate(kinds) if kind is Kind.PREDICT]
            predicted = iter(self._predict(rows, data, context))
            items = [next(predicted) if kind is Kind.PREDICT else self._special(kind) for kind in kinds]
        return [self._encode(item, index, context) for index, item in enumerate(in_memory(items))]

    def close(self) -> None:
        """Cancel what a coroutine has left running, and close the event loop."""
        if self._loop is not None:
            self._loop.close()

    def _decode(self, body: RequestBody) -> Values | Instances:
        """Return the values of the parameters that the request fills, or those of its instances.

        Raises:
            UnreadablePayload: a part is missing or cannot be decoded.
            TooManyPixels: its images do not fit beside those of the rows before.
        """
        if self._bounded:
            self._pixels.begin_row()
        values: Values | Instances
        try:
            parts = parts_of(body, self._signature.arguments)
        except UnreadablePayload:
            if INSTANCES not in body.parts:
                raise
            values = self._decode_instances(body)
        else:
            values = self._values(parts)
        if self._bounded:
            self._pixels.keep()
        return values

    def _values(self, parts: Mapping[str, Part]) -> Values:
        values: Values = {}
        for each in self._signature.arguments:
            if each.name in parts:
                values[each.name] = self._decoders[each.name](parts[each.name])
            elif not each.has_default:
                values[each.name] = None
        return values

    def _decode_instances(self, body: RequestBody) -> Values | Instances:
        """Decode a request of KServe's first protocol; without `instances` its body is as of any other request."""
        arguments, given = self._signature.arguments, dict(body.parts)
        whole = given.pop(INSTANCES)
        check_names(given, [each.name for each in arguments])
        instances = instances_of(whole)
        if instances is None:
            return self._values(parts_of(RequestBody({**given, "body": whole}), arguments))
        if self._signature.streams:
            raise UnreadablePayload("`instances`: the handler answers in pieces, which this protocol has not")
        rows = []
        for number, instance in enumerate(instances):
            try:
                rows.append(self._values(parts_of_instance(instance, given, arguments)))
            except UnreadablePayload as error:
                raise UnreadablePayload(f"instance {number + 1}: {message_of(error)}") from error
        self._has_instances = True
        return Instances(rows)

    def _special(self, kind: Kind) -> Any:
        if kind is Kind.EXPLAIN:
            return PredictionException(f"`{self._signature.function}` is a typed handler, which explains nothing", 501)
        if kind is Kind.DESCRIBE:
            inputs = [{"name": each.name, "kind": each.kind, "type": each.annotation} for each in self._declared.inputs]
            return {"inputs": inputs, "output": self._declared.output}
        return None

    def _predict(self, rows: Sequence[int], data: list[Any], context: Context) -> list[Any]:
        """Return what the function answers to each of some rows, or an exception in its place."""
        if not rows:
            return []
        for row in rows:
            if isinstance(data[row], RequestBody):
                return self._predict_in_turns(rows, data, context)
        values = {row: data[row] for row in rows}
        if self._has_instances:
            return self._run_all(rows, values, context)
        return self._run(rows, values, context)

    def _predict_in_turns(self, rows: Sequence[int], data: list[Any], context: Context) -> list[Any]:
        """Run the rows that are decoded; then those that fit together of the others, until there is none left."""
        items: dict[int, Any] = {}
        left = list(rows)
        while left:
            values: dict[int, Values | Instances] = {}
            self._pixels.begin_batch()
            decoded = [row for row in left if not isinstance(data[row], RequestBody)]
            for row in decoded or left:
                try:
                    values[row] = data[row] if decoded else self._decode(data[row])
                except UnreadablePayload as error:
                    items[row] = error
                except TooManyPixels:
                    continue
                except MemoryError:
                    raise
                except Exception as error:  # noqa: BLE001 - user code; the other rows go on
                    items[row] = error
            left = [row for row in left if row not in values and row not in items]
            if values:
                items.update(zip(values, self._run_all(list(values), values, context), strict=True))
            for row in values:
                data[row] = None  # its images make room for the others'
        return [items[row] for row in rows]

    def _run_all(self, rows: Sequence[int], values: Mapping[int, Any], context: Context) -> list[Any]:
        """Return what the function answers to each of these rows; of instances, each is a row of the function's own."""
        if not any(isinstance(values[row], Instances) for row in rows):
            return self._run(rows, values, context)
        owners: list[int] = []
        calls: dict[int, Values] = {}
        for row in rows:
            each = values[row]
            for one in each.rows if isinstance(each, Instances) else (each,):
                calls[len(owners)] = one
                owners.append(row)
        with context.selected(owners):
            items = self._run(range(len(owners)), calls, context) if owners else []
        own: dict[int, list[Any]] = {row: [] for row in rows}
        for owner, item in zip(owners, items, strict=True):
            own[owner].append(item)
        return [predictions(own[row]) if isinstance(values[row], Instances) else own[row][0] for row in rows]

    def _run(self, rows: Sequence[int], values: Mapping[int, Values], context: Context) -> list[Any]:
        """Return what the function answers to each of these rows, or an exception in its place."""
        if not self._signature.batches:
            return self._run_rows(rows, values, context)
        if not self._may_lack:
            return self._run_batch(rows, values, context)
        items: dict[int, Any] = {}
        for group in _alike(rows, values):
            items.update(zip(group, self._run_batch(group, values, context), strict=True))
        return [items[row] for row in rows]

    def _run_batch(self, rows: Sequence[int], values: Mapping[int, Values], context: Context) -> list[Any]:
        columns: Values = {name: [values[row][name] for row in rows] for name in values[rows[0]]}
        if self._to_gpu is not None:
            columns |= self._to_gpu({name: columns[name] for name in self._tensors if name in columns})
        with _selected(context, rows):
            result = self._call(columns, context)
            if not self._signature.streams:
                result = self._event_loop().run(result) if self._signature.waits else result
                answers = check_batch(result, len(rows), self._signature)
                return [self._promise.check(each) for each in answers] if self._promise.kinds else answers
            self._send_pieces(result, len(rows), context)
            return [END] * len(rows)

    def _send_pieces(self, pieces: Any, rows: int, context: Context) -> None:
        """Send what a generator yields, a piece for each of some rows at a time."""
        # Not in `_run_batch`: compiled, its lambda would make a reference cycle of every batch, without pieces, too.
        take = _Sender(context)
        if self._signature.waits:
            self._event_loop().each(pieces, lambda piece: send_batch(piece, rows, self._signature, take))
        else:
            for piece in pieces:
                send_batch(piece, rows, self._signature, take)

    def _run_rows(self, rows: Sequence[int], values: Mapping[int, Values], context: Context) -> list[Any]:
        """Run each row as a call of its own: an exception fails only its row."""
        alone = False  # where the rows are large together, each that runs in turn goes to the GPU before its call
        if self._to_gpu is not None:
            tensors = {row: self._tensors_of(values[row]) for row in rows}
            there = self._to_gpu(tensors)
            alone = there is tensors
            values = {row: values[row] | there[row] for row in rows}
        if not self._signature.waits and not self._signature.streams:
            return [self._run_row(row, values[row], context, alone) for row in rows]
        # The calls of several rows are under way at the same time, each with a context of its own: tensors that are
        # large together stay in main memory.
        calls = [self._call(values[row], _only(context, row)) for row in rows]
        with _selected(context, rows):
            if self._signature.streams:
                sender = _Sender(context)
                return self._event_loop().stream(calls, sender) if self._signature.waits else stream_rows(calls, sender)
            return [self._promise.check(each) for each in self._event_loop().gather(calls)]

    def _tensors_of(self, values: Values) -> Values:
        return {name: values[name] for name in self._tensors if name in values}

    def _run_row(self, row: int, values: Values, context: Context, alone: bool) -> Any:
        try:
            if alone:
                assert self._to_gpu is not None
                values = values | self._to_gpu(self._tensors_of(values))
            if not self._signature.context:
                return self._promise.check(self._call(values, context))
            with context.selected([row]):
                return self._promise.check(self._call(values, context))
        except Exception as error:  # noqa: BLE001 - user code; the other rows go on
            return error

    def _call(self, values: Values, context: Context) -> Any:
        keywords = dict(values)
        positional = [keywords.pop(each.name) for each in self._signature.arguments if each.positional]
        if self._signature.context:
            keywords[self._signature.context] = context
        return self._function(*positional, **keywords)

    def _encode(self, item: Any, row: int, context: Context) -> Any:
        if isinstance(item, BaseException) or item is END:
            return item
        assert context.request_processor is not None
        processor = context.request_processor[row]
        wanted = wanted_type(processor.get_request_properties().items()) if is_array(item) else ""
        try:
            body, content_type = encode_answer(item, wanted)
        except NotSerialisable as error:
            return error
        _set_type(processor, content_type)
        return body

    def _event_loop(self) -> Any:
        if self._loop is None:
            from tsctl.handlers.typed.waiting import EventLoop

            self._loop = EventLoop()
        return self._loop


class _Sender:
    """Sends the pieces of the batch that runs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        assert context.send_pieces is not None
        self._send = context.send_pieces

    def __call__(self, row: int, piece: Any) -> None:
        body, content_type = encode_piece(piece)
        assert self._context.request_processor is not None
        _set_type(self._context.request_processor[row], content_type)
        self._send([body], [row])


def _set_type(processor: RequestProcessor, content_type: str) -> None:
    """Set the content type of an answer, unless the handler has set another."""
    if content_type:
        headers: Any = processor.get_response_headers()  # a handler may set names and values of any type
        if not headers or not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = content_type


def _selected(context: Context, rows: Sequence[int]) -> AbstractContextManager[None]:
    """Let the context be that of some rows; of all of them it is already."""
    return nullcontext() if len(rows) == len(context.request_ids) else context.selected(rows)


def _only(context: Context, row: int) -> Context:
    """Return a context for one row of the batch."""
    assert context.request_processor is not None
    processor = context.request_processor[row]
    other = context.beside()
    other.request_ids = {0: context.request_ids[row]}
    other.request_processor = [processor]
    other.metrics.request_ids = other.request_ids
    return other


def _alike(rows: Sequence[int], values: Mapping[int, Values]) -> list[list[int]]:
    """Group the rows by the parameters that they fill: a missing one takes its default, for a whole call."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        groups.setdefault(tuple(values[row]), []).append(row)
    return list(groups.values())


def _arguments_of(method: Callable[..., Any], context: Context) -> list[Any]:
    """Return what a method that loads is called with: the context, a device where it is called so, or nothing."""
    required = [each.name for each in inspect.signature(method).parameters.values() if each.default is each.empty]
    if not required:
        return []
    gpu = context.system_properties["gpu_id"]
    return [("cpu" if gpu is None else f"cuda:{gpu}") if required[0] == "device" else context]


def _to_gpu_of(instance: Any) -> Callable[[Any], Any] | None:
    """Return what moves tensors to the GPU that a handler's `device` names; None where it names none."""
    from tsctl.handlers.requests.gpu_copies import sent

    device = device_of(instance)
    return partial(sent, device=device) if device.type == "cuda" else None


def _batch_size(function: Callable[..., Any], instance: Any) -> int:
    wanted = getattr(function if instance is None else instance, "batch_size", 0)
    if type(wanted) is not int or not 0 <= wanted <= 2**53:
        raise HandlerError(f"`batch_size` of the handler is {wanted!r}; expected a whole number from 1")
    return wanted
