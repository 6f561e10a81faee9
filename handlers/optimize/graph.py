"""CUDA graphs: one call starts all kernels of a model, where a call for each would keep a fast GPU waiting.

    batch of 5 ──▶ copied into the first 5 rows of the graph's input for 8 ──▶ replay ──▶ the first 5 rows of its output
                                          pixels are normalised ▸ model ▸ answers are made of its output

A graph is captured at load for 1, 2, 4, … rows and the batch size; a batch runs in the smallest that holds it. What the
other rows hold is old, and their answers are dropped: a model that mixes rows is found by the check. All graphs share
the memory of the largest, as no two run at the same time. An input of another shape, or with gradients, runs without.

ResNet-50 in float32 on an H100: a batch of one takes 0.7 ms instead of 5.4, one of 8 takes 1.4 instead of 5.1, and one
of 32, whose kernels are as long as their launches, 4.5 instead of 5.1 (`python -m tests.lab.gpu.parts`).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn

from tsctl.handlers.optimize.trees import map_tensors, tensors_of
from tsctl.handlers.optimize.wrapper import ModelWrapper
from tsctl.handlers.requests.early_answers import WholeCalls

_WARM_UPS = 3  # runs before a capture, in which libraries choose kernels and allocate, as torch.cuda.graph asks for


class NotGraphable(Exception):
    """A model's call cannot be captured; the message gives the reason."""


class Captured(NamedTuple):
    """A call: what it reads, and what it writes.

    Attributes:
        graph: starts its kernels on the current stream by `replay`, as `torch.cuda.CUDAGraph`.
        answers: of the output; None where they are not made here.
    """

    graph: Any
    images: torch.Tensor
    output: Any
    answers: torch.Tensor | None


Capture = Callable[[Callable[[], Any]], tuple[Any, Any]]


def refusal(device: torch.device) -> str:
    """Return why there are no graphs here; empty if there are."""
    return "" if device.type == "cuda" else f"a CUDA graph runs on a GPU, and the model is on the {device.type}"


def sizes(batch_size: int) -> Iterator[int]:
    """Return the numbers of rows that have a graph, the largest first: it makes the memory that the others share."""
    yield batch_size
    size = 1 << (batch_size - 1).bit_length() >> 1
    while size:
        if size < batch_size:
            yield size
        size >>= 1


class Graphed(ModelWrapper, WholeCalls):
    """A model with graphs of its calls with one tensor, whose first dimension is the rows.

    Args:
        capture: runs a function, and returns what runs its kernels again, and what the function returned.
        normalise: makes the model's input of uint8; the graphs are of calls with pixels then.
        answer: makes of the model's output a tensor of all that its answers need.

    Attributes:
        replays: whether graphs run, and not the model itself.
    """

    within = "eager"

    def __init__(
        self,
        model: nn.Module,
        capture: Capture,
        normalise: Callable[[torch.Tensor], torch.Tensor] | None = None,
        answer: Callable[[Any], torch.Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.eager = model
        self.takes_pixels = normalise is not None
        self.answers = None
        self.replays = True
        self._normalise = normalise
        self._answer = answer
        self._capture_of = capture
        self._captures = False
        self._captured: list[Captured] = []  # the smallest first

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self._captures:
            self._captures = False
            self._capture(args, kwargs)
        self.answers = None
        captured = None if torch.is_grad_enabled() or not self.replays else self._fitting(args, kwargs)
        if captured is None:
            return self._run(*args, **kwargs)
        rows = len(args[0])
        captured.images[:rows].copy_(args[0])
        captured.graph.replay()
        if captured.answers is not None:
            self.answers = captured.answers[:rows].clone()
        return map_tensors(captured.output, lambda tensor: tensor[:rows].clone())

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        if self._normalise is not None and args and isinstance(args[0], torch.Tensor) and args[0].dtype == torch.uint8:
            args = (self._normalise(args[0]), *args[1:])
        return self.eager(*args, **kwargs)

    def _run_whole(self, images: torch.Tensor) -> tuple[Any, torch.Tensor | None]:
        output = self._run(images)
        return output, None if self._answer is None else self._answer(output)

    def capture(self, run: Callable[[], Any]) -> Any:
        """Capture the model's call that `run` makes; return what `run` returns.

        Raises:
            NotGraphable: it calls the model with anything but one tensor, or its output's rows are not those.
            RuntimeError: the model does what a graph cannot: it waits for the GPU, or decides by what is there.
        """
        self._captures = True
        try:
            return run()
        finally:
            self._captures = False

    def _capture(self, args: Any, kwargs: Any) -> None:
        if len(args) != 1 or kwargs or not isinstance(args[0], torch.Tensor) or not args[0].dim():
            raise NotGraphable("a graph is of a call with one tensor, and the handler passes something else")
        with torch.inference_mode(mode=False):  # written to in whichever mode the model is called later
            images = args[0].clone()
        graph, (output, answers) = self._capture_of(lambda: self._run_whole(images))
        shapes = [tuple(each.shape) for each in tensors_of((output, answers))]
        if not shapes or any(shape[:1] != images.shape[:1] for shape in shapes):
            told = ", ".join(map(str, shapes)) or "no tensor"
            raise NotGraphable(f"the output for {len(images)} rows is {told}: its rows cannot be told apart")
        self._captured.insert(0, Captured(graph, images, output, answers))

    def _fitting(self, args: Any, kwargs: Any) -> Captured | None:
        if len(args) != 1 or kwargs or not isinstance(args[0], torch.Tensor):
            return None
        given = args[0]
        for captured in self._captured:
            images = captured.images
            if (
                len(given) <= len(images)
                and given.shape[1:] == images.shape[1:]
                and given.dtype == images.dtype
                and given.device == images.device
            ):
                return captured
        return None


class CudaCapture:
    """Captures on one GPU, into memory that all graphs share.

    Attributes:
        pool: of their memory; None before the first.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.pool: Any = None

    def __call__(self, run: Callable[[], Any]) -> tuple[Any, Any]:
        """Run a function, and capture what it starts."""
        with torch.cuda.device(self._device):
            side, usual = torch.cuda.Stream(), torch.cuda.current_stream()
            side.wait_stream(usual)
            with torch.cuda.stream(side):
                for _ in range(_WARM_UPS):
                    run()
            usual.wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self.pool):
                output = run()
            self.pool = graph.pool()
        return graph, output
