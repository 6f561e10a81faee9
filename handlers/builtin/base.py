"""`BaseHandler`: load a model, and run `preprocess`, `inference`, `postprocess` on each batch.

Users subclass BaseHandler and override a stage. Members and order are TorchServe's (ts/torch_handler/base_handler.py).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import torch

from tsctl.handlers.builtin.support import profiling
from tsctl.handlers.builtin.support.batches import batches_of, run_within
from tsctl.handlers.builtin.support.compiling import compiled
from tsctl.handlers.builtin.support.insights import target_of
from tsctl.handlers.builtin.support.labels import load_label_mapping
from tsctl.handlers.builtin.support.model_inputs import (
    ModelTensor,
    arrays_of,
    dtype_for,
    inputs_of,
    is_whole,
    tensors_of,
)
from tsctl.handlers.builtin.support.model_outputs import items_of_outputs, outputs_of
from tsctl.handlers.builtin.support.modelfile import load_eager, load_file
from tsctl.handlers.builtin.support.onnx import is_session, run_session
from tsctl.handlers.builtin.support.weights import moved
from tsctl.handlers.requests.gpu_copies import fetched, to_device
from tsctl.handlers.requests.kinds import Kind, answer, answer_part, kind_of
from tsctl.handlers.requests.rows import value_of
from tsctl.handlers.sdk.batches import ANY, FileBatches
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError, InvalidResult, UnreadablePayload, UnreadableRows
from tsctl.handlers.sdk.gpu import check_gpu, device_of
from tsctl.handlers.sdk.per_batch import PerBatch
from tsctl.handlers.sdk.plain_model import PlainModel
from tsctl.handlers.sdk.timer import timed
from tsctl.handlers.wire import STAGE_TIME, STAGES


class PreparedRow(dict[str, Any]):
    """A row as the handler sees it, with its decoded value in `prepared`; None once the value was released."""

    prepared: Any = None


def is_prepared(row: Any) -> bool:
    return isinstance(row, PreparedRow) and row.prepared is not None


_NAMES = ("data", "body")


def payload_of(row: Any) -> Any:
    """Return the value of a row: its `data`, else its `body`; of an object with one of these members, that member."""
    value = value_of(row)
    if isinstance(value, Mapping) and isinstance(row, Mapping):  # JSON, with the input where a form has it
        value = next((value[name] for name in _NAMES if name in value), value)
    return value


def lacking(row: Any, what: str) -> UnreadablePayload:
    """Return the error for a row without a value: its parts have other names.

    Args:
        what: the input, in words.
    """
    names = [f"`{str(name)[:100]}`" for name in list(row)[:10]] if isinstance(row, Mapping) else []
    if not names or any(name in row for name in _NAMES):
        has = "The request's body is null" if names else "The request has no body"
    else:
        has = f"The request has {', '.join(names)}, and the handler takes `data` or `body`"
    return UnreadablePayload(f"{has}: send {what} (`curl -T FILE`), or as that part (`curl -F data=@FILE`)")


def prepare_rows(
    data: list[Any],
    decode: Callable[[Any], Any],
    spread: Callable[[Callable[[Any], Any], list[Any]], Iterable[Any]] = map,
) -> dict[int, UnreadablePayload]:
    """Replace each row in place by a `PreparedRow` with its decoded value.

    Args:
        decode: row → value; raises UnreadablePayload. A row for which it raises anything else stays as it is: it meets
            the error again, in a call of its own.
        spread: maps a function over the rows, in order.

    Returns:
        Index of each unreadable row → the reason.
    """

    def attempt(row: Any) -> Any:
        try:
            return decode(row)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - a user's own transforms
            return error

    unreadable = {}
    for index, (row, made) in enumerate(zip(list(data), spread(attempt, list(data)), strict=True)):
        if isinstance(made, Exception):
            if isinstance(made, UnreadablePayload):
                unreadable[index] = made
            continue
        prepared = PreparedRow(row) if isinstance(row, (dict, Mapping)) else PreparedRow(data=row)
        prepared.prepared = made
        data[index] = prepared
    return unreadable


def decode_rows(data: list[Any], decode: Callable[[Any], Any]) -> list[Any]:
    """Return the value of each row, as decoded by `prepare_rows` or now.

    Raises:
        UnreadableRows: some rows are unreadable; only for rows that `prepare_rows` has not seen.
    """
    rows, unreadable = [], {}
    for index, row in enumerate(data):
        try:
            rows.append(row.prepared if is_prepared(row) else decode(row))
        except UnreadablePayload as error:
            unreadable[index] = error
    if unreadable:
        raise UnreadableRows(unreadable)
    return rows


def load_model(handler: "BaseHandler", model_dir: Path) -> Any:
    """Return the model that the handler's manifest names, ready for inference on its device.

    No method: a user's subclass may well have one called `_load_model`.

    Raises:
        HandlerError: the archive names no model, or one that cannot be loaded.
    """
    model_file, weights = handler.manifest.get("model", {}).get("modelFile"), handler.model_pt_path
    if model_file:
        model = handler._load_pickled_model(str(model_dir), Path(model_file).name, weights)
        return moved(model, device_of(handler)).eval()
    if weights is None:
        raise HandlerError(
            "there is no model to load: neither a model file nor a serialized file is named. Name one with `tsctl"
            " archive --model-file` or `--serialized-file`, or let `initialize` load the model"
        )
    if weights.endswith(".pt"):
        return handler._load_torchscript_model(weights).eval()
    return load_file(Path(weights), device_of(handler))


def input_device(handler: "BaseHandler") -> torch.device:
    """Return the device on which the model takes its input: an ONNX session copies it to its GPU from main memory."""
    return torch.device("cpu") if is_session(handler.model) else device_of(handler)


def _numbers_of(row: Any) -> torch.Tensor:
    """Return the array of a row, in torch's default dtype of its values.

    Raises:
        UnreadablePayload: the row is not an array of numbers.
    """
    payload = payload_of(row)
    if payload is None:
        raise lacking(row, "the numbers in JSON")
    try:
        if isinstance(payload, (bytes, bytearray)):  # a file, or a part of a form
            payload = json.loads(payload)
        return torch.as_tensor(payload)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # the last one also of deep nesting
        raise UnreadablePayload(f"The request is not an array of numbers: {error}") from None


def _read_together(decode: Callable[[Any], Any], rows: list[Any]) -> Iterable[Any]:
    """Return the array of each row: of several lists in one shape by one call of torch, which takes half as long."""
    first = payloads = [payload_of(row) for row in rows]
    if len(rows) > 1 and all(type(each) is list for each in payloads):
        # Else each row says what is wrong with it. LookupError: torch would cut all rows to the length of an empty one.
        with suppress(TypeError, ValueError, OverflowError, RuntimeError, LookupError):
            made = torch.as_tensor(payloads)
            while type(first[0]) is list:
                first = [each[0] for each in first]
            if len({*map(type, first)}) == 1 and torch.tensor(first[0]).dtype is made.dtype:  # each row's own, alone
                return made.unbind()
    return map(decode, rows)


class BaseHandler:
    """A handler for one model.

    Attributes:
        model: on `device`, in inference mode; None before `initialize`.
        mapping: class number as a string → name, or None.
        initialized: `initialize` has succeeded.
        load_again: loads another copy of the model, as `initialize` did; None before.
        whole_as: the dtype in which the model takes whole numbers, once it has raised for them; else None.
        chooses_class: whether answers are the best classes of the model's output; None for whether there is a mapping.
        plain: provides the model as loaded, if `model` has been optimised since.
    """

    model: Any = PerBatch()
    context: Any = PerBatch()
    whole_as: torch.dtype | None = None
    chooses_class: ClassVar[bool | None] = None
    # What TorchServe's handler does not have: of the class, because a handler's own `__init__` may not call this one.
    load_again: Callable[[], Any] | None = None
    plain: PlainModel | None = None
    _file_batches: FileBatches | None = None
    _own_inputs: list[ModelTensor] | None = None
    _own_outputs: list[ModelTensor] | None = None

    def __init__(self) -> None:
        self.model = None
        self.mapping: dict[str, Any] | None = None
        self.device: torch.device = torch.device("cpu")
        self.initialized = False
        self.context = None
        self.manifest: dict[str, Any] = {}
        self.map_location = "cpu"
        self.model_pt_path: str | None = None
        self.model_yaml_config: dict[str, Any] = {}
        self.explain = False
        self.target = 0
        self.profiler_args: dict[str, Any] = {}

    def initialize(self, context: Context) -> None:
        """Load the model onto its device, and the class names.

        Raises:
            HandlerError: the archive holds no model that can be loaded, or torch cannot use the GPU.
        """
        properties = context.system_properties
        gpu_id = properties.get("gpu_id")
        if gpu_id is not None:  # a template must not call CUDA
            check_gpu(int(gpu_id))
        self.map_location = "cpu" if gpu_id is None else "cuda"
        self.device = torch.device("cpu" if gpu_id is None else f"cuda:{gpu_id}")
        self.context = context
        self.manifest = context.manifest
        self.model_yaml_config = context.model_yaml_config
        model_dir = Path(properties["model_dir"])
        serialized = self.manifest.get("model", {}).get("serializedFile")
        self.model_pt_path = str(model_dir / Path(serialized).name) if serialized else None
        self.load_again = partial(load_model, self, model_dir)
        model = self.load_again()
        self._own_inputs = self._own_outputs = None
        self._file_batches = batches_of(model)
        self.model = compiled(model, self.model_yaml_config)
        self.mapping = self._load_names(model_dir)
        self.initialized = True

    # TorchServe's names and arguments of the two: handlers override them, and call them in their own `initialize`.

    def _load_pickled_model(self, model_dir: str, model_file: str, model_pt_path: str | None) -> Any:
        """Return the model of a file's one class, on any device, with its weights if there are any."""
        weights = None if model_pt_path is None else Path(model_pt_path)
        config = getattr(self, "model_yaml_config", {})  # a handler's own `__init__` may not call ours
        return load_eager(Path(model_dir) / model_file, weights, config)

    def _load_torchscript_model(self, model_pt_path: str) -> Any:
        """Return the model of a .pt file, on `device`."""
        return load_file(Path(model_pt_path), device_of(self))

    def _load_names(self, model_dir: Path) -> dict[str, Any] | None:
        return load_label_mapping(model_dir / "index_to_name.json")

    def prepare(self, data: list[Any]) -> dict[int, UnreadablePayload]:
        """Return the unreadable rows, before `handle` is called with the others.

        Called only where `handle` is this class's. A handler may replace rows by `PreparedRow`s to keep the decoded
        values.

        Returns:
            Index of each unreadable row → the reason.
        """
        if type(self).preprocess is not BaseHandler.preprocess:
            return {}
        inputs = self.own_inputs
        if not inputs:
            return prepare_rows(data, _numbers_of, _read_together)
        unreadable = {}
        for index, row in enumerate(data):
            try:
                arrays_of(row, inputs)
            except UnreadablePayload as error:
                unreadable[index] = error
        return unreadable

    @timed
    def preprocess(self, data: list[Any]) -> Any:
        """Return the model's input: one tensor of all rows, shape (rows, …), on `input_device`.

        The dtype is torch's default for the rows' values: float32 for floats, int64 for whole numbers. Where the
        model's file tells its inputs, they have its types; of several the tensors are in a list.
        """
        inputs = self.own_inputs
        if inputs:
            tensors = tensors_of(data, inputs, input_device(self))
            return tensors[0] if len(tensors) == 1 else tensors
        [batch] = to_device([torch.stack(decode_rows(data, _numbers_of))], input_device(self))
        return batch

    @timed
    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the model once on the whole batch, without recording gradients.

        Args:
            data: shape (rows, …). Whole numbers are converted to the model's dtype if the model does not take them
                (support/model_inputs.py).
        """
        takes = self.file_batches
        if isinstance(data, list) and data and len(self.own_inputs) == len(data):  # one tensor for each input
            if takes is ANY:
                return self._call_network(*data)
            return run_within(
                takes, lambda rows: self._call_network(*(each[rows] for each in data)), torch.arange(len(data[0]))
            )
        if takes is ANY or args or kwargs or not isinstance(data, torch.Tensor) or not data.dim():
            return self._call_network(data, *args, **kwargs)
        return run_within(takes, self._call_network, data)

    def _call_network(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        if is_session(self.model):
            return run_session(self.model, data, *args)
        with torch.inference_mode():
            data = data.to(self.device)
            if self.whole_as is not None and is_whole(data):
                data = data.to(self.whole_as)
            try:
                return self.model(data, *args, **kwargs)
            except RuntimeError as error:
                dtype = dtype_for(self.model, data, error)
                if dtype is None:
                    raise
                first = error
            try:
                result = self.model(data.to(dtype), *args, **kwargs)
            except RuntimeError:
                raise first from None
            self.whole_as = dtype
            return result

    @property
    def file_batches(self) -> FileBatches:
        """The batches that the model's file takes; any, where the model does not come from a file that tells."""
        if self._file_batches is None:
            self._file_batches = batches_of(self.model)
        return self._file_batches

    @property
    def own_inputs(self) -> list[ModelTensor]:
        """The inputs that the model's file tells; none where it does not, or where a subclass has steps of its own."""
        if self._own_inputs is None:
            own = type(self)
            usual = own.preprocess is BaseHandler.preprocess and own.inference is BaseHandler.inference
            self._own_inputs = inputs_of(self.model) if usual and self.model is not None else []
        return self._own_inputs

    @property
    def own_outputs(self) -> list[ModelTensor]:
        """The outputs that the model's file tells; none where it does not, or where a subclass has steps of its own."""
        if self._own_outputs is None:
            own = type(self)
            usual = own.inference is BaseHandler.inference and own.postprocess is BaseHandler.postprocess
            self._own_outputs = outputs_of(self.model) if usual and self.own_inputs else []
        return self._own_outputs

    @timed
    def postprocess(self, data: Any) -> list[Any]:
        """Return one item for each row: nested lists of the row's numbers; of several outputs an object or a list.

        Args:
            data: the model's output, a tensor of shape (rows, …), or several (model_outputs.py).
        """
        return items_of_outputs(fetched(data), [each.name for each in self.own_outputs])

    def handle(self, data: list[Any], context: Context) -> list[Any]:
        """Answer a batch: run the three stages on the rows that ask for predictions.

        Rows that ask for an explanation (header `explain`) or a description (`describe`) run separately; see
        handlers/requests/kinds.py.
        """
        items: list[Any] = answer(self, data, context, self._run_stages)
        return items

    def _run_stages(self, data: list[Any]) -> list[Any]:
        """Run the stages on rows that are alike: those of another shape fail alone, if the model does not take them."""
        groups = self._groups_alike(data)
        if len(groups) < 2:  # nearly always
            return self._run_stages_alike(data)
        items: dict[int, Any] = {}
        for rows in groups:
            items.update(zip(rows, self._run_stages_of(self._run_stages_alike, data, rows), strict=True))
        return [items[row] for row in range(len(data))]

    def _run_stages_of(self, predict: Callable[[list[Any]], Any], data: list[Any], rows: list[int]) -> list[Any]:
        """Return the items of some rows, or an exception in the place of each; a wrong result fails the whole batch."""
        items = answer_part(predict, [data[row] for row in rows], self.context, rows)
        if isinstance(items[0], InvalidResult):
            raise items[0]
        return items

    def _groups_alike(self, data: list[Any]) -> list[list[int]]:
        """Return the rows that can be one tensor; of decoded ones and others, each of the others for itself."""
        kinds = [is_prepared(row) and self._likeness_of(row.prepared) for row in data]
        if len({*kinds}) < 2:  # nearly always
            return []
        groups: dict[Any, list[int]] = {}
        for index, kind in enumerate(kinds):
            groups.setdefault(f"row {index}" if kind is False else kind, []).append(index)
        return [*groups.values()]

    def _likeness_of(self, prepared: Any) -> Any:
        """Return what values of rows have in common that the model can take together: their shape."""
        return getattr(prepared, "shape", None)

    def _run_stages_alike(self, data: list[Any]) -> list[Any]:
        if profiling.wanted():
            return profiling.run_profiled(self, data, explains=False)[0]
        began = perf_counter()
        prepared = self.preprocess(data)
        prepared_at = perf_counter()
        output = self.inference(prepared)
        computed_at = perf_counter()
        items = self.postprocess(output)
        tally = getattr(getattr(self.context, "metrics", None), "tally", None)  # of a worker's context
        if tally is not None:
            # Of this thread: work that a GPU does later counts for the stage that waits for it, mostly the last one.
            seconds = (prepared_at - began, computed_at - prepared_at, perf_counter() - computed_at)
            for stage, took in zip(STAGES, seconds, strict=True):
                tally.add("histogram", STAGE_TIME, "s", (("stage", stage),), took)
        return items

    def _infer_with_profiler(self, data: list[Any]) -> tuple[list[Any], torch.profiler.profile]:
        """Run the stages under the profiler; TorchServe's name, which its pages have users' `handle` call."""
        return profiling.run_profiled(self, data, explains=self._is_explain())

    def explain_handle(self, data_preprocess: Any, raw_data: list[Any]) -> Any:
        """Explain the prediction of one row.

        Args:
            data_preprocess: the result of `preprocess` for the row.
            raw_data: the row, in a list of one.

        Returns:
            The result of `get_insights`: a list of one item.
        """
        row = raw_data[0]
        value = value_of(row)
        given = row.get("target") if isinstance(row, Mapping) else None
        if given is None and isinstance(value, Mapping) and any(name in value for name in _NAMES):
            given = value.get("target")  # of a JSON object, beside the input
        return self.get_insights(data_preprocess, value, target_of(given))

    def get_insights(self, tensor_data: Any, raw_data: Any, target: Any = 0) -> Any:
        """Attribute the score of class `target` to the parts of the input; explainable handlers override this.

        Raises:
            NotImplementedError: the handler does not override this method.
        """
        raise NotImplementedError(f"the handler {type(self).__name__} has no `get_insights`, so it explains nothing")

    def describe_handle(self) -> Any:
        """Describe the model: any value that JSON can hold. None by default."""
        return None

    def get_device(self) -> torch.device:
        return self.device

    def _is_explain(self) -> bool:
        """Return whether the first request asks for an explanation; TorchServe's name, used by users' `handle`."""
        asked = self._first_kind() is Kind.EXPLAIN
        self.explain = self.explain or asked
        return asked

    def _is_describe(self) -> bool:
        return self._first_kind() is Kind.DESCRIBE

    def _first_kind(self) -> Kind:
        context = self.context
        asked = {} if context is None else {key: context.get_request_header(0, key) for key in ("explain", "describe")}
        return kind_of(asked)
