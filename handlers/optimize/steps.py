"""The optimisations as changes of a handler in place, and what is run to check them."""

import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from tsctl.handlers.builtin import fast_images, scaled_decode
from tsctl.handlers.names import ONNX_RUNTIME
from tsctl.handlers.optimize import bfloat16, folding, graph, inductor, onnx_runtime
from tsctl.handlers.optimize.checks.drift import CLASSES_LOST, TF32_TOLERANCE, TOLERANCES, agreement, drift
from tsctl.handlers.optimize.checks.samples import CHECKED_ROWS, archive_rows, digest_of, made_up_rows, varied
from tsctl.handlers.optimize.compiler import find_compiler
from tsctl.handlers.optimize.int8.calibration import Scales
from tsctl.handlers.optimize.int8.model import Int8, refusal
from tsctl.handlers.optimize.packages import keeping
from tsctl.handlers.optimize.packages.package import Packages
from tsctl.handlers.optimize.packages.recording import NotExportable, Recorded, record
from tsctl.handlers.optimize.packages.side_by_side import Apart
from tsctl.handlers.requests.early_answers import coming_of, early_answer
from tsctl.handlers.requests.excerpt import message_of
from tsctl.handlers.requests.gpu_copies import on_host
from tsctl.handlers.requests.sample import samples_of
from tsctl.handlers.sdk.gpu import device_of
from tsctl.handlers.sdk.plain_model import PlainModel

_log = logging.getLogger(__name__)

FAST_IMAGES, SCALED_DECODE = "fast_images", "scaled_decode"
# These change how the handler reads images; all others change its model.
READING = {FAST_IMAGES: fast_images, SCALED_DECODE: scaled_decode}
INT8 = "int8"


class NotApplied(Exception):
    """An optimisation has not been applied; the message gives the reason.

    Args:
        idle: the optimisation has nothing to do, which is not a failure.
    """

    def __init__(self, reason: str, *, idle: bool = False) -> None:
        super().__init__(reason)
        self.idle = idle


class CheckedSample(NamedTuple):
    """A row for `preprocess`, the inputs made of `CHECKED_ROWS` of them, and the plain model's output for these.

    Attributes:
        number: of the row, the best being 0.
    """

    number: int
    row: Mapping[str, Any]
    inputs: Any
    expected: Any


class Steps:
    """Applies optimisations to a handler whose model is loaded.

    Args:
        beside: starts processes that compile; None: all is compiled in this one.
        compiles: whether `compile` compiles a model that is not kept compiled; else it is not applied then.

    Attributes:
        done: the names of those applied, in order.
        full_drift: the drift of full batches, where these run differently from others.
        samples_digest: of the archive's samples, which outcomes hang on.
        reached: optimisation → how much of the model it has changed, in words.
        scales: of `int8`, as calibrated now or by an earlier trial; None before.

    Raises:
        NotApplied: the handler's model cannot be optimised.
    """

    def __init__(
        self,
        handler: Any,
        model_dir: Path,
        config: Mapping[str, Any],
        batch_size: int,
        beside: Apart | None = None,
        *,
        compiles: bool = True,
    ) -> None:
        self.handler = handler
        self._beside = beside
        self.batch_size = batch_size
        self._compiles = compiles
        self._model_dir = model_dir
        # Libraries hold the interpreter's lock while they run, which stages that overlap want.
        self._overlaps = config.get("pipeline") is True
        model = getattr(handler, "model", None)
        if not hasattr(handler, "load_again"):
            raise NotApplied("the handler is not a subclass of BaseHandler, so its model cannot be found")
        if not isinstance(model, nn.Module):
            raise NotApplied(f"the model is a {type(model).__name__}, and only a torch.nn.Module can be optimised")
        if hasattr(model, "_orig_mod"):
            raise NotApplied("`pt2` in model-config.yaml has the model compiled already")
        self._device = device_of(handler)
        samples = samples_of(model_dir, config)
        self.samples_digest = digest_of(samples)
        self._samples = archive_rows(samples)
        self._rows = [*self._samples[:1], *made_up_rows(handler)]  # the best first
        if not self._rows:
            raise NotApplied("there is no sample to check on: name a file of the archive as `warmup`")
        self.done: list[str] = []
        self.full_drift = 0.0
        self.scales: Scales | None = None
        self.reached: dict[str, str] = {}
        self._expected: list[tuple[Any, Any]] = []  # inputs, and the outputs of the model before all that is inexact
        self._ways: dict[str, Callable[[], None]] = {
            FAST_IMAGES: partial(self._read, FAST_IMAGES),
            SCALED_DECODE: partial(self._read, SCALED_DECODE),
            "fold": self._fold,
            "channels_last": self._channels_last,
            "bf16": self._bf16,
            "int8": self._int8,
            "compile": self._compile,
            ONNX_RUNTIME: self._onnx_runtime,
            "graph": self._graph,
        }

    @cached_property
    def sample(self) -> CheckedSample:
        """The first row that the present model can run.

        Raises:
            NotApplied: the model fails on all of them.
        """
        failed: Exception | None = None
        for number, row in enumerate(self._rows):
            try:
                inputs = self._of(row, CHECKED_ROWS)
                return CheckedSample(number, row, inputs, self.infer(inputs))
            except Exception as error:  # noqa: BLE001 - user code may raise anything
                failed = error
        assert failed is not None
        raise NotApplied(f"the plain model fails on the sample: {in_words(failed)}") from failed

    def preprocess(self, rows: int) -> Any:
        """Return the model's input for so many rows of the sample."""
        return self._of(self.sample.row, rows)

    @cached_property
    def large_row(self) -> Mapping[str, Any]:
        """The sample's row, with its image enlarged if `scaled_decode` would find nothing to do."""
        return {"body": scaled_decode.enlarge(self.sample.row, self.handler.preparation)}

    def read(self, name: str, rows: int, *, usual: bool) -> Any:
        """Return the model's input for so many rows, read as usual or with an optimisation that changes the reading."""
        self._switch(name, usual=usual)
        return self._of(self.large_row if name == SCALED_DECODE else self.sample.row, rows)

    def _switch(self, name: str, *, usual: bool) -> None:
        if usual:
            READING[name].stop_using(self.handler)
        else:
            READING[name].use(self.handler)

    def reading_drift(self, name: str) -> float:
        """Return how far apart the inputs are, in the pixels' units, that are read as usual and with an optimisation.

        The sample must have been read before `FAST_IMAGES` was in use.
        """
        usual = self.sample.inputs if name == FAST_IMAGES else self.read(name, CHECKED_ROWS, usual=True)
        return fast_images.pixel_drift(usual, self.read(name, CHECKED_ROWS, usual=False), self.handler.preparation)

    def tolerance(self, name: str, given: Mapping[str, float]) -> float:
        """Return the largest drift with which an applied optimisation is kept.

        Args:
            given: optimisation → largest drift, where the archive names one.
        """
        if name in given:
            return given[name]
        if self._device.type == "cuda" and torch.backends.cudnn.allow_tf32 and name not in READING:
            return max(TF32_TOLERANCE, TOLERANCES[name])
        # Precision lost by bf16 stays lost in later steps.
        return TOLERANCES["bf16" if "bf16" in self.done else name]

    def classes_lost(self, name: str, given: Mapping[str, float]) -> float | None:
        """Return the largest fraction of best classes that an optimisation may change.

        Args:
            given: as in `tolerance`.

        Returns:
            None where the drift decides: the optimisation is exact but for rounding, or answers are no classes.
        """
        chooses = self.handler.chooses_class
        if not (self.handler.mapping is not None if chooses is None else chooses):
            return None
        if name not in CLASSES_LOST and ("bf16" not in self.done or name in READING):
            return None
        lossy = name if name in CLASSES_LOST else "bf16"  # what that has lost stays lost in later steps
        return given.get(name, given.get(lossy, CLASSES_LOST[lossy]))

    def note_expected(self, name: str) -> None:
        """Run the model as it is, before an inexact optimisation, on the inputs whose classes are compared."""
        if not self._expected and name not in (INT8, SCALED_DECODE):  # int8 does so while it is calibrated
            self._expected = [(each, self.infer(each)) for each in self._varied()]

    def compare_classes(self, name: str) -> tuple[float, float | None, int]:
        """Return the drift, the agreement and the number of inputs on which an applied optimisation was compared.

        The agreement is None where the output has no classes.
        """
        if name == SCALED_DECODE:
            return self._compare_reading()
        plain = [output for _, output in self._expected]
        other = [self.infer(each) for each, _ in self._expected]
        apart = max(drift(mine, its) for mine, its in zip(plain, other, strict=True))
        return apart, agreement(plain, other), len(plain)

    def _compare_reading(self) -> tuple[float, float | None, int]:
        """Compare the classes of large images that are read as usual, and decoded at a part of their size."""
        how = self.handler.preparation
        rows = [{"body": scaled_decode.enlarge(row, how)} for row in self._varied_rows()]
        outputs = []
        for usual in (True, False):
            self._switch(SCALED_DECODE, usual=usual)
            outputs.append([self.infer(each) for each in varied([partial(self._of, row, 1) for row in rows])])
        return self.reading_drift(SCALED_DECODE), agreement(*outputs), len(outputs[0])

    def _varied_rows(self) -> Sequence[Mapping[str, Any]]:
        return self._samples if self.sample.number == 0 and self._samples else [self.sample.row]

    def _varied(self) -> list[Any]:
        return list(varied([partial(self._of, row, 1) for row in self._varied_rows()]))

    def _run(self, rows: int) -> Any:
        return self.infer(self.preprocess(rows))

    def _record(self, rows: int) -> Recorded:
        return record(self.handler, lambda: self._run(rows))

    def _of(self, row: Mapping[str, Any], rows: int) -> Any:
        return self.handler.preprocess([dict(row) for _ in range(rows)])

    def infer(self, inputs: Any) -> Any:
        """Return the model's output, once the device has finished."""
        output = self.handler.inference(inputs)
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return output

    def apply(self, name: str) -> None:
        """Apply one optimisation.

        Raises:
            NotApplied: the optimisation is not for this handler, model or machine.
            Exception: any other; a compiler may raise anything.
        """
        if name not in READING and self.handler.plain is None:
            self.handler.plain = PlainModel.of(self.handler)
        self._ways[name]()
        self.done.append(name)

    def start_again(self, names: Sequence[str]) -> None:
        """Load the plain model and apply only these: an optimisation that failed may have changed half of the model."""
        for each in READING.values():
            each.stop_using(self.handler)
        if self.handler.plain is not None:
            self.handler.model = self.handler.plain.fresh()
        self.done = []
        for name in names:
            self.apply(name)

    def _read(self, name: str) -> None:
        if not READING[name].use(self.handler):
            how = getattr(self.handler, "preparation", None)
            if name == SCALED_DECODE and how is not None and how.least_side is None:
                raise NotApplied(f"images are resized by `{how.interpolation}`, which smaller ones change too much")
            raise NotApplied("the handler does not prepare images as `image_classifier` does")

    def _fold(self) -> None:
        count = folding.count_normalisations(self.handler.model)
        folded = folding.fold(self.handler.model)
        if not folded:
            of = f", of the {count} that are there" if count else ""
            raise NotApplied(f"no convolution is followed by a batch normalisation of its own{of}", idle=True)
        self.reached["fold"] = f"{folded} of {count} batch normalisations"

    def _channels_last(self) -> None:
        if not any(parameter.dim() == 4 for parameter in self.handler.model.parameters()):
            raise NotApplied("the model has no two-dimensional convolution", idle=True)
        self.handler.model.to(memory_format=torch.channels_last)

    def _bf16(self) -> None:
        _check(bfloat16.refusal(self._device))
        self.handler.model = bfloat16.Bfloat16(self.handler.model).eval()

    def _int8(self) -> None:
        _check(refusal(self.handler.model, self._device))
        model = self.handler.model = Int8(self.handler.model).eval()
        if self.scales is None:
            inputs = self._varied()

            def run() -> None:
                self._expected = [(each, self.infer(each)) for each in inputs]

            self.scales = model.calibrate(run)
        count = model.count()
        converted = model.convert(self.scales)
        if not converted:
            raise NotApplied("no convolution or linear layer of torch.nn in float32 runs in it; drop `int8`")
        self.reached[INT8] = f"{converted} of {count} convolutions and linear layers"

    def _compile(self) -> None:
        _check(inductor.refusal(self.handler.model, self._device))
        packages = self._packages()
        if packages is not None:
            self.full_drift = packages.drift
            self.handler.model = inductor.Compiled(self.handler.model, self._device, packages).eval()
            return
        if not self._compiles:
            raise NotApplied("its code is not kept compiled here, and compiling would delay the first answer")
        compiled = self.handler.model = inductor.Compiled(self.handler.model, self._device).eval()
        inductor.compile_sizes(compiled, self._run, self.batch_size)
        if self._device.type == "cpu":  # elsewhere no weights are packed
            full = self.preprocess(self.batch_size)
            self.full_drift = compiled.compile_full(lambda: self.infer(full))

    def _onnx_runtime(self) -> None:
        model = self.handler.model
        _check(onnx_runtime.refusal(model, self._device))
        folder = keeping.folder_for(self.handler, self._model_dir, [*self.done, ONNX_RUNTIME], self.batch_size)
        exported = None if folder is None else keeping.find(folder, model, onnx_runtime.Exported)
        if exported is None:
            if not self._compiles:
                raise NotApplied("it is not kept exported here, and exporting would delay the first answer")
            exported = self._export(model, folder)
        self.full_drift = exported.drift
        self.handler.model = onnx_runtime.OnnxModel(model, exported).eval()

    def _export(self, model: nn.Module, folder: Path | None) -> onnx_runtime.Exported:
        make = partial(onnx_runtime.make, model, self._record)
        try:
            if folder is None:
                with tempfile.TemporaryDirectory() as draft:
                    return make(Path(draft))[1]
            made = keeping.keep(folder, make)
        except NotExportable as error:
            raise NotApplied(str(error)) from error
        return keeping.find(folder, model, onnx_runtime.Exported) or made  # where it stays

    def _graph(self) -> None:
        handler = self.handler
        _check(graph.refusal(self._device))
        capture, answer, normalise = graph.CudaCapture(self._device), early_answer(handler), None
        if answer is not None and handler.join is not None:  # a user's own stage may use what is normalised
            normalise = handler.join.normalise
        graphed = handler.model = graph.Graphed(handler.model, capture, normalise, answer).eval()
        for size in graph.sizes(self.batch_size):
            graphed.capture(partial(self._run, size))
        full = self.preprocess(self.batch_size)
        # In turns with other inputs: no graph may give an earlier answer, or mix in the rows beyond a shorter batch.
        inputs = [torch.zeros_like(full), full[1:], torch.zeros_like(full), full]
        inputs = [each for each in inputs if len(each)]
        graphed.replays = False
        expected = [self.infer(each) for each in inputs]
        graphed.replays = True
        self.full_drift = max(map(self._graph_drift, inputs, expected))

    def _graph_drift(self, inputs: Any, expected: Any) -> float:
        """Return the drift of a batch in graphs, from the output without, and from the answers that output has."""
        output, answer = self.infer(inputs), early_answer(self.handler)
        if answer is None:
            return drift(expected, output)
        return max(drift(expected, output), drift(on_host(answer(output)), coming_of(output, answer).wait()))

    def _packages(self) -> Packages | None:
        """Return the model as libraries, as they were kept or are made now; None where torch.compile has to do."""
        if self._device.type != "cpu" or self._overlaps:
            return None
        try:
            folder = keeping.folder_for(self.handler, self._model_dir, self.done, self.batch_size)
            if folder is None:
                return None
            kept = keeping.find(folder, self.handler.model, Packages)
            if kept is not None or not self._compiles:
                return kept
            from tsctl.handlers.optimize.packages.making import make

            model, compiler = self.handler.model, find_compiler() or ""
            return keeping.keep(
                folder, lambda draft: make(model, self._record, self.batch_size, draft, compiler, self._beside)
            )
        except Exception as error:  # noqa: BLE001 - torch raises anything for a model that it cannot export
            _log.info("the model is compiled anew in each worker, as it cannot be kept compiled: %s", in_words(error))
            return None


def _check(refusal: str) -> None:
    if refusal:
        raise NotApplied(refusal)


def in_words(error: BaseException) -> str:
    text = message_of(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
