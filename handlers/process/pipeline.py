"""Several batches of one model at the same time: read the next batch during inference of this one.

    lane 1   preprocess 1 ▸ inference 1 ▸ postprocess 1   preprocess 3 ▸ …
    lane 2                  preprocess 2 ▸ inference 2 ▸ postprocess 2
    lane 3 (on a GPU)                      preprocess 3 ▸ …

Each stage has one thread, which runs one batch after the other in order of arrival; a lane carries one batch through
all stages, with its own context. The next batch is read once inference of this one is asked for: so none overtakes. A
batch behaves as without a pipeline: the lane runs `Runtime.run`.

A pipeline pays off where the stages wait for different things: a GPU, a disk, a network. Where all stages compute on
the same cores there is no gain: reading a batch on all threads and then inferring on all threads is never slower than
doing both at once on a share of the threads.

So many lanes run lanes / (the sum of the stages' times) batches a second, and at most 1 / (the longest time). On a GPU,
where `postprocess` waits for the kernels, three lanes always reach that; two do not where reading a batch takes about
as long as its kernels. On a CPU two stages share the cores, and a third batch would only wait.
"""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from tsctl.handlers import wire
from tsctl.handlers.runtime.runtime import Runtime, SendPieces, no_pieces
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.gpu import device_of
from tsctl.handlers.sdk.per_batch import own_values

LANES, LANES_ON_GPU = 2, 3
STAGES = ("prepare", "preprocess", "inference", "postprocess")
_THREAD = {"prepare": "preprocess"}  # both read the rows


class Ran(NamedTuple):
    """A batch that has run; the attributes are those of `Runtime`."""

    answers: list[wire.Answer]
    isolation: wire.Isolation | None
    failures: list[wire.HandlerFailure]
    too_large: int


Done = Callable[[Ran], None]


def suits(handler: Any, own_handle: bool, config: Mapping[str, Any]) -> bool:
    """Return whether a handler's batches may run at the same time.

    By default: handlers whose four stages are ours, with the model on a GPU. `pipeline: true` in `model-config.yaml`
    also allows a user's stages, which must then be thread-safe, and the CPU; `false` forbids pipelining.

    Args:
        own_handle: the handler defines its own `handle`, which cannot be split into stages.

    Raises:
        HandlerError: `pipeline` is neither true nor false, or true for a handler with its own `handle`.
    """
    wanted = config.get("pipeline")
    if wanted not in (None, True, False):
        raise HandlerError(f"model-config.yaml: `pipeline` is {wanted!r}; expected true or false")
    if own_handle or "handle" in vars(handler):
        if wanted:
            raise HandlerError(
                "model-config.yaml: `pipeline: true` needs a handler class whose `handle` is BaseHandler's,"
                " because only its stages are known"
            )
        return False
    if wanted is not None:
        return bool(wanted)
    ours = all(getattr(type(handler), stage).__module__.startswith("tsctl.handlers.builtin.") for stage in STAGES)
    return ours and device_of(handler).type != "cpu"


def lanes_for(kind: str) -> int:
    """Return how many batches are to be under way on this kind of device."""
    return LANES if kind == "cpu" else LANES_ON_GPU


class Passed:
    """The stages that a batch has behind itself, in which the next one may follow.

    Attributes:
        read: its inference was asked for, or it has ended.
        inferred: so was its `postprocess`.
    """

    def __init__(self) -> None:
        self.read, self.inferred = threading.Event(), threading.Event()

    def end(self) -> None:
        self.read.set()
        self.inferred.set()


class Pipeline:
    """Runs batches, at most `lanes` of them at the same time.

    Args:
        runtime: has loaded a handler that `suits` accepts; the pipeline wraps the handler's stages.
        lanes: by default as many as the handler's device can use.
        set_threads: sets the calling thread's number of threads for tensor operations.
    """

    def __init__(
        self,
        runtime: Runtime,
        lanes: int | None = None,
        set_threads: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._handler = runtime.handler
        self._set_threads = set_threads
        lanes = lanes or lanes_for(device_of(self._handler).type)
        names = dict.fromkeys(_THREAD.get(stage, stage) for stage in STAGES)
        self._stages = {name: ThreadPoolExecutor(1, name) for name in names}
        for stage in STAGES:
            setattr(self._handler, stage, self._turn(stage, getattr(self._handler, stage)))
        self._lanes = ThreadPoolExecutor(lanes, "lane")
        self._free = threading.Semaphore(lanes)
        self._runtimes = [runtime, *(runtime.beside() for _ in range(lanes - 1))]
        self._last: Future[None] = Future()
        self._last.set_result(None)
        self._newest = Passed()
        self._newest.end()
        self._of_lane = threading.local()  # `before` and `own`: of the batch that the lane carries, and the one before

    def submit(self, rows: Sequence[wire.Row], done: Done, send: SendPieces = no_pieces) -> None:
        """Start a batch; block while all lanes are taken.

        Args:
            done: called with what came of the batch; on another thread, batch after batch in order of arrival.

        Raises:
            Exception: an earlier `done` raised it.
        """
        self._free.acquire()
        if self._last.done():
            self._last.result()
        before, self._newest = self._newest, Passed()
        self._last = self._lanes.submit(self._run, rows, done, send, self._last, before, self._newest)

    def set_threads(self, count: int) -> None:
        """Divide so many threads among the stages, from each stage's next batch on."""
        # On a CPU, preprocessing takes one thread from inference, if inference has two.
        on_cpu = device_of(self._handler).type == "cpu"
        shares = {"preprocess": 1, "inference": max(1, count - 1)} if on_cpu else {"preprocess": count}
        for name, stage in self._stages.items():
            stage.submit(self._set_threads, shares.get(name, 1)).result()

    def close(self) -> None:
        """Wait for the running batches, and end the threads.

        Raises:
            Exception: a `done` raised it.
        """
        self._lanes.shutdown()
        for stage in self._stages.values():
            stage.shutdown()
        for stage_name in STAGES:
            with contextlib.suppress(AttributeError):
                delattr(self._handler, stage_name)
        self._last.result()

    def _run(
        self,
        rows: Sequence[wire.Row],
        done: Done,
        send: SendPieces,
        last: Future[None],
        before: Passed,
        own: Passed,
    ) -> None:
        """Carry a batch through the stages, behind the one before."""
        runtime = self._runtimes.pop()
        self._of_lane.before, self._of_lane.own = before, own
        try:
            before.read.wait()
            # The model too: an explanation replaces it.
            with own_values(self._handler, context=None, model=self._handler.model):
                answers = runtime.run(rows, send)
                ran = Ran(answers, runtime.isolation, runtime.failures, runtime.too_large)
        finally:
            own.end()
            self._runtimes.append(runtime)
        try:
            last.result()
            done(ran)
        finally:
            self._free.release()

    def _turn(self, stage: str, run: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a stage to run on its thread, with the lane's context and model."""
        thread = self._stages[_THREAD.get(stage, stage)]

        def take_turn(*args: Any, **kwargs: Any) -> Any:
            context, model = self._handler.context, self._handler.model  # the lane's

            def in_its_context() -> Any:
                with own_values(self._handler, context=context, model=model):
                    return run(*args, **kwargs)

            before, own = getattr(self._of_lane, "before", None), getattr(self._of_lane, "own", None)
            if before is None or own is None:  # on a thread of the handler's
                return thread.submit(in_its_context).result()
            if stage == "postprocess":
                before.inferred.wait()
            waiting = thread.submit(in_its_context)
            if stage == "inference":
                own.read.set()
            elif stage == "postprocess":
                own.inferred.set()
            return waiting.result()

        return take_turn
