"""Apply optimisations to a handler's model, each checked against the plain model.

An optimisation that cannot be applied, or drifts beyond its tolerance, is reverted: with a warning for a default of the
handler; for one asked for by name the model is rejected, because an operator who asks for `bf16` counts on its speed.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from handlers import wire
from handlers.builtin import fast_images
from handlers.optimize import bfloat16, folding, inductor
from handlers.optimize.asked import chosen
from handlers.optimize.drift import TF32_TOLERANCE, TOLERANCES, drift
from handlers.optimize.samples import CHECKED_ROWS, sample_rows
from handlers.requests.excerpt import message_of
from handlers.sdk.errors import HandlerError
from handlers.sdk.plain_model import PlainModel

_log = logging.getLogger(__name__)


class NotApplied(Exception):
    """An optimisation has not been applied; the message gives the reason.

    Args:
        idle: the optimisation has nothing to do, which is not a failure.
    """

    def __init__(self, reason: str, drift: float | None = None, *, idle: bool = False) -> None:
        super().__init__(reason)
        self.drift = drift
        self.idle = idle


def optimize(
    handler: Any, asked: Sequence[str] | None, model_dir: Path, config: Mapping[str, Any], batch_size: int
) -> list[wire.Optimized]:
    """Optimise the model of an initialized handler.

    Args:
        handler: any object; only one with a `model` that is a `torch.nn.Module` can be optimised.
        asked: the optimisations asked for by name, None for the handler's defaults.

    Returns:
        The outcome of each optimisation, in the order of application.

    Raises:
        HandlerError: an optimisation asked for by name cannot be applied or drifts too far, or `optimizeTolerance` is
            invalid.
    """
    wanted = chosen(asked, type(handler))
    if not wanted:
        return []
    tolerances = read_tolerances(config)
    try:
        work = _Work(handler, model_dir, config, batch_size)
    except NotApplied as error:
        if any(wanted.values()):
            raise HandlerError(f"`optimize: {', '.join(asked or ())}` cannot be done: {error}") from error.__cause__
        return [wire.Optimized(name, False, None, 0.0, message_of(error)) for name in wanted]
    return [work.do(name, by_name, tolerances.get(name)) for name, by_name in wanted.items()]


def read_tolerances(config: Mapping[str, Any]) -> dict[str, float]:
    """Parse `optimizeTolerance` of `model-config.yaml`: optimisation → largest drift.

    Raises:
        HandlerError: the value is not a mapping of optimisations to non-negative numbers.
    """
    given = config.get("optimizeTolerance") or {}
    if not isinstance(given, dict) or not all(
        name in TOLERANCES and type(value) in (int, float) and value >= 0 for name, value in given.items()
    ):
        what = f"a mapping of {', '.join(TOLERANCES)} to numbers"
        raise HandlerError(f"model-config.yaml: `optimizeTolerance` is {given!r}; expected {what}")
    return {name: float(value) for name, value in given.items()}


class _Work:
    """The state of optimising a handler: the steps applied, and the plain model's output for the sample."""

    def __init__(self, handler: Any, model_dir: Path, config: Mapping[str, Any], batch_size: int) -> None:
        self._handler = handler
        self._batch_size = batch_size
        model = getattr(handler, "model", None)
        if not hasattr(handler, "load_again"):
            raise NotApplied("the handler is not a subclass of BaseHandler, so its model cannot be found")
        if not isinstance(model, nn.Module):
            raise NotApplied(f"the model is a {type(model).__name__}, and only a torch.nn.Module can be optimised")
        if hasattr(model, "_orig_mod"):
            raise NotApplied("`pt2` in model-config.yaml has the model compiled already")
        rows = sample_rows(handler, model_dir, config)
        if not rows:
            raise NotApplied("there is no sample to check on: name a file of the archive as `warmup`")
        self._applied: list[Callable[[], None]] = []
        self._plain: PlainModel | None = None
        self._full_drift = 0.0  # of full batches, where these run differently from others
        self._steps = {
            "fast_images": self._fast_images,
            "fold": self._fold,
            "channels_last": self._channels_last,
            "bf16": self._bf16,
            "compile": self._compile,
        }
        for row in rows:
            self._row = row
            try:
                self._inputs = self._preprocess(CHECKED_ROWS)
                self._expected = self._infer(self._inputs)
                return
            except Exception as error:  # noqa: BLE001 - user code may raise anything
                failed = error
        raise NotApplied(f"the plain model fails on the sample: {_in_words(failed)}") from failed

    def do(self, name: str, by_name: bool, tolerance: float | None) -> wire.Optimized:
        """Apply one optimisation; revert on failure or too much drift."""
        began = time.perf_counter()
        step = self._steps[name]
        try:
            if name != "fast_images" and self._plain is None:
                self._plain = self._handler.plain = PlainModel.of(self._handler)
            step()
            found = self._pixel_drift() if name == "fast_images" else drift(self._expected, self._infer(self._inputs))
            found = max(found, self._full_drift)
            most = self._tolerance(name) if tolerance is None else tolerance
            if not found <= most:
                raise NotApplied(f"its drift is {found:.1e}, and {most:.1e} is tolerated", found)
        except Exception as error:  # noqa: BLE001 - a compiler may raise anything
            why = error if isinstance(error, NotApplied) else NotApplied(_in_words(error))
            if not why.idle:
                self._take_back(name)
            return _taken_back(name, why, time.perf_counter() - began, by_name)
        self._applied.append(step)
        return wire.Optimized(name, True, found, time.perf_counter() - began)

    def _take_back(self, name: str) -> None:
        """Start again from the plain model: an optimisation changes the model in place."""
        if name == "fast_images":
            fast_images.stop_using(self._handler)
        elif self._plain is not None:
            self._handler.model = self._plain.fresh()
            for step in self._applied:
                if step != self._fast_images:
                    step()

    def _tolerance(self, name: str) -> float:
        if self._handler.device.type == "cuda" and torch.backends.cudnn.allow_tf32 and name != "fast_images":
            return max(TF32_TOLERANCE, TOLERANCES[name])
        # Precision lost by bf16 stays lost in later steps.
        return TOLERANCES["bf16" if self._bf16 in self._applied else name]

    def _preprocess(self, rows: int) -> Any:
        return self._handler.preprocess([dict(self._row) for _ in range(rows)])

    def _infer(self, inputs: Any) -> Any:
        return self._handler.inference(inputs)

    def _pixel_drift(self) -> float:
        return fast_images.pixel_drift(self._inputs, self._preprocess(CHECKED_ROWS))

    def _fast_images(self) -> None:
        if not fast_images.use(self._handler):
            raise NotApplied("the handler does not prepare images as `image_classifier` does")

    def _fold(self) -> None:
        if not folding.fold(self._handler.model):
            raise NotApplied("no convolution is followed by a batch normalisation of its own", idle=True)

    def _channels_last(self) -> None:
        if not any(parameter.dim() == 4 for parameter in self._handler.model.parameters()):
            raise NotApplied("the model has no two-dimensional convolution", idle=True)
        self._handler.model.to(memory_format=torch.channels_last)

    def _bf16(self) -> None:
        reason = bfloat16.refusal(self._handler.device)
        if reason:
            raise NotApplied(reason)
        self._handler.model = bfloat16.Bfloat16(self._handler.model).eval()

    def _compile(self) -> None:
        reason = inductor.refusal(self._handler.model, self._handler.device)
        if reason:
            raise NotApplied(reason)
        compiled = self._handler.model = inductor.Compiled(self._handler.model, self._handler.device).eval()
        inductor.compile_sizes(compiled, lambda size: self._infer(self._preprocess(size)), self._batch_size)
        if self._handler.device.type == "cpu":  # elsewhere no weights are packed
            full = self._preprocess(self._batch_size)
            self._full_drift = compiled.compile_full(lambda: self._infer(full))


def _taken_back(name: str, why: NotApplied, seconds: float, by_name: bool) -> wire.Optimized:
    if by_name and not why.idle:
        raise HandlerError(f"`optimize: {name}` cannot be done: {why}") from why.__cause__
    if not why.idle:
        _log.warning("the model is served without the optimisation %s: %s", name, why)
    return wire.Optimized(name, False, why.drift, seconds, message_of(why))


def _in_words(error: BaseException) -> str:
    text = message_of(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
