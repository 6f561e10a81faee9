"""`MicroBatching`: split a batch into micro-batches, and run the three stages of a handler at the same time.

    preprocess    1  2  3  4
    inference        1  2  3  4
    postprocess         1  2  3  4

A handler replaces its `handle` with an instance, as with TorchServe (ts/handler_utils/micro_batching.py). There, a
stage that raises leaves its worker waiting for ever; here, the batch fails with that error. The stages see the context
of the whole batch, from several threads.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import local
from typing import Any

from tsctl.handlers.requests.kinds import answer
from tsctl.handlers.requests.rows import items_of
from tsctl.handlers.sdk.errors import UnreadableRows

STAGES = ("preprocess", "inference", "postprocess")


class MicroBatching:
    """Runs a handler's stages on micro-batches.

    Args:
        parent_handler: has the methods `preprocess`, `inference` and `postprocess`.
        micro_batch_size: rows in a micro-batch; the last may have fewer.
        parallelism: stage → threads, by default one each.
    """

    def __init__(
        self, parent_handler: Any, micro_batch_size: int = 1, parallelism: Mapping[str, int] | None = None
    ) -> None:
        self.handler = parent_handler
        self.micro_batch_size = micro_batch_size
        self._parallelism: dict[str, int] = {}
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._running = local()  # the number of the micro-batch in each thread
        self.parallelism = parallelism or {}

    @property
    def parallelism(self) -> dict[str, int]:
        """The number of threads of each stage. Assigned values are merged into the existing ones.

        Raises:
            ValueError: on assignment, a name is not a stage, or a number of threads is not a positive integer.
        """
        return dict(self._parallelism)

    @parallelism.setter
    def parallelism(self, parallelism: Mapping[str, int]) -> None:
        wanted = dict.fromkeys(STAGES, 1) | self._parallelism | dict(parallelism)
        for stage, threads in wanted.items():
            if stage not in STAGES:
                raise ValueError(f"`{stage}` is not a stage of a handler; the stages are {', '.join(STAGES)}")
            if not isinstance(threads, int) or threads < 1:
                raise ValueError(f"the stage `{stage}` needs one thread or more, not {threads!r}")
        self.shutdown()
        self._parallelism = wanted

    def shutdown(self) -> None:
        """Let the threads finish and end; the next batch starts new ones."""
        for pool in self._pools.values():
            pool.shutdown()
        self._pools = {}

    def get_micro_batch_idx(self) -> int | None:
        """Return the number of the micro-batch, from 0, in a stage that runs on one; else None."""
        found: int | None = getattr(self._running, "number", None)
        return found

    def __call__(self, data: list[Any], context: Any) -> Any:
        """Answer a batch: the handler's `handle`. Explanations and descriptions are not micro-batched."""
        return answer(self.handler, data, context, self.handle)

    def handle(self, data: list[Any]) -> list[Any]:
        """Run the stages on a batch of rows; return one item for each, in order.

        Raises:
            Exception: the first error of a stage.
        """
        size = self.micro_batch_size
        starts = range(0, len(data), size)
        parts = [data[start : start + size] for start in starts]
        futures = [self._submit("preprocess", number, part) for number, part in enumerate(parts)]
        for stage in STAGES[1:]:
            futures = [self._submit(stage, number, future) for number, future in enumerate(futures)]
        wait(futures)  # also after a failure: no thread may see the context of the next batch
        unreadable, items = {}, []
        for start, part, future in zip(starts, parts, futures, strict=True):
            try:
                items += items_of(future.result(), len(part))
            except UnreadableRows as error:
                unreadable.update({start + row: why for row, why in error.rows.items()})
        if unreadable:
            raise UnreadableRows(unreadable)
        return items

    def _submit(self, stage: str, number: int, given: Sequence[Any] | Future[Any]) -> Future[Any]:
        """Run a stage on its own threads, after the result of the stage before."""
        if stage not in self._pools:
            self._pools[stage] = ThreadPoolExecutor(self._parallelism[stage], stage)
        run: Callable[[Any], Any] = getattr(self.handler, stage)

        def run_one() -> Any:
            data = given.result() if isinstance(given, Future) else given
            self._running.number = number
            return run(data)

        return self._pools[stage].submit(run_one)
