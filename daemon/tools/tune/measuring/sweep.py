"""The sweep: every placement, its batch sizes from small to large, with one worker busy and with all."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from daemon.core.clock import Clock
from daemon.core.job import Param
from daemon.tools.tune.candidates import batch_sizes
from daemon.tools.tune.measuring.harness import Harness, SampleFailed
from daemon.tools.tune.overlap import Contention
from daemon.tools.tune.times import Curve, PlacementTimes
from daemon.workers.engine import Engine, WorkerSpec

LITTLE = 0.03  # relative gain in requests a second: two sizes in a row with less end the sweep

Tell = Callable[..., None]  # stage, **facts
MeasureContention = Callable[[Harness, int], Awaitable[Contention]]  # with all workers busy on batches of this size


class Sweep:
    """Measures one placement after the other.

    Attributes:
        times: of the placements, in order.
        answer: the body of a response of the model.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        spec: WorkerSpec,
        params: Sequence[Param],
        seconds: float,
        tell: Tell,
        measure_contention: MeasureContention,
    ) -> None:
        self.times: list[PlacementTimes] = []
        self.answer = b""
        self._engine = engine
        self._clock = clock
        self._spec = spec
        self._params = params
        self._seconds = seconds
        self._tell = tell
        self._measure_beside = measure_contention
        self._done = self._total = 0

    async def run(self, placements: Sequence[tuple[int, int]], most: int) -> None:
        """Measure all placements, with batch sizes up to `most`.

        Raises:
            LoadFailed: the model does not load.
            SampleFailed: the model cannot answer even a single request.
        """
        sizes = batch_sizes(most)
        self._total = sum(len(sizes) * (1 if workers == 1 else 2) + 1 for workers, _ in placements)
        for workers, threads in placements:
            self._tell("loading", workers=workers, threads=threads, done=self._done, total=self._total)
            harness = Harness(self._engine, self._clock, self._spec, workers, threads, self._params)
            try:
                await harness.start()
                times = await self._placement(harness, threads, sizes)
                self.answer = harness.answer
            finally:
                await harness.close()
            self.times.append(times)
            self._tell("measured", **document(times))
            sizes = [size for size in sizes if size <= times.busy.sizes[-1]]

    async def _placement(self, harness: Harness, threads: int, sizes: Sequence[int]) -> PlacementTimes:
        counts = sorted({1, harness.workers})
        measured: dict[int, dict[int, list[float]]] = {busy: {} for busy in counts}
        poor = 0
        before = self._done
        for size in sizes:
            try:
                for busy in counts:
                    facts = {"workers": harness.workers, "threads": threads, "busy": busy, "size": size}
                    self._tell("measuring", done=self._done, total=self._total, **facts)
                    measured[busy][size] = await harness.measure(size, busy, self._seconds)
                    self._done += 1
            except SampleFailed as error:
                if size == 1:
                    raise
                for curve in measured.values():
                    curve.pop(size, None)
                self._tell(
                    "note", text=f"a batch of {size} failed, so larger ones were skipped: {str(error).splitlines()[0]}"
                )
                break
            poor = poor + 1 if _gain(measured[harness.workers]) < LITTLE else 0
            if poor == 2:
                break
        self._done = before + len(sizes) * len(counts)
        curves = {busy: Curve(curve) for busy, curve in measured.items()}
        size = curves[harness.workers].sizes[-1]
        facts = {"workers": harness.workers, "threads": threads, "busy": harness.workers, "size": size}
        self._tell("measuring", done=self._done, total=self._total, **facts)
        beside = await self._measure_beside(harness, size)
        self._done += 1
        return PlacementTimes(harness.workers, threads, curves, beside)


def _gain(measured: dict[int, list[float]]) -> float:
    """Return the relative gain in requests a second of the largest size over the one before; 1.0 if it is the first."""
    curve = Curve(measured)
    if len(curve.sizes) < 2:
        return 1.0
    (small, large), (quick, slow) = curve.sizes[-2:], curve.medians[-2:]
    return (large / slow) / (small / quick) - 1


def document(times: PlacementTimes) -> dict[str, Any]:
    """Return the measurements; times in seconds, and under `beside` the slowdown factors of batches and requests."""
    curves = []
    for busy, curve in times.curves.items():
        fit = curve.fit()
        curves.append({
            "busy": busy, "a": fit.a, "c": fit.c, "residual": fit.residual,
            "sizes": curve.sizes, "medians": curve.medians,
        })  # fmt: skip
    beside = {"batches": times.beside.batches, "requests": times.beside.others}
    return {"workers": times.workers, "threads": times.threads, "curves": curves, "beside": beside}
