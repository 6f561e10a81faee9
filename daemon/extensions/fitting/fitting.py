"""The cap of one version: its workers tell which batches did not fit, and a timer tries larger ones again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import ref

from tsctl.daemon.core.clock import Timer
from tsctl.daemon.core.timing import duration
from tsctl.daemon.declarations import Samples, VersionView
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.models.version import ModelVersion

FIRST = 60.0  # seconds until more requests are tried
LONGEST = 3600.0  # seconds; each try costs one batch, whose halves run again


@dataclass(frozen=True, slots=True)
class Cap:
    """The most requests in a batch of a version whose batches did not fit into memory; the time is an argument.

        no cap ──a batch does not fit──▶ its half ──`wait` later──▶ twice as many ──…──▶ the batch size ──`wait`──▶ no
        cap
                                            ▲                           │                     │
                                            └──────── does not fit: `wait` is doubled ────────┘

    What fits depends on the requests, and on what else uses the GPU; so more are tried for ever, and less often each
    time that this fails.

    Attributes:
        most: that many, at least 1; at most the batch size.
        too_large: the batch that did not fit, in requests.
        wait: seconds from a change to the next one.
        due: when more are tried, or the cap is forgotten; on the clock of `now`.
        raised: more are tried since a batch did not fit.
    """

    most: int
    too_large: int
    wait: float
    due: float
    raised: bool = False


def lowered(cap: Cap | None, rows: int, now: float) -> Cap:
    """Return the cap after so many requests, at least 2, did not fit together: half of them, rounded up.

    The same cap if that is no less: the batch was sent before it, or another worker has told of it already.
    """
    most = (rows + 1) // 2
    if cap is not None and most >= cap.most:
        return cap
    wait = FIRST if cap is None else cap.wait
    if cap is not None and cap.raised:
        wait = min(LONGEST, 2 * wait)
    return Cap(most, rows, wait, now + wait)


def raised(cap: Cap, batch_size: int, now: float) -> Cap | None:
    """Return the cap after it is due: twice as many, up to the batch size; None if these have been tried for long."""
    if cap.most >= batch_size:
        return None
    return replace(cap, most=min(batch_size, 2 * cap.most), due=now + cap.wait, raised=True)


class Fitting:
    """The largest batch that fits into the memory of a version's workers, as far as they tell.

    Attributes:
        cap: None while batches may be as large as the settings allow.
        count: batches that did not fit.
    """

    def __init__(self, model: ModelVersion) -> None:
        self.cap: Cap | None = None
        self.count = 0
        self._model = model
        self._batch_size = model.settings.batch_size
        self._timer: Timer | None = None
        model.path.too_large.append(self)

    def document(self) -> dict[str, Any] | None:
        """Return the most requests in a batch, how many did not fit, and in how many seconds more are tried."""
        cap = self.cap
        if cap is None:
            return None
        left = max(0.0, cap.due - self._model.clock.now())
        return {"most": cap.most, "tooLarge": cap.too_large, "triedInSeconds": round(left, 1)}

    def __call__(self, rows: int) -> None:
        """Lower the cap: a worker's memory did not suffice for so many rows together."""
        self.count += 1
        requests = -(-rows // self._model.dispatcher.share)
        cap = lowered(self.cap, max(2, requests), self._model.clock.now())
        if cap is not self.cap:
            self._set(cap)
            self._model.reports.add(
                "batch-capped",
                f"a batch of {requests} requests did not fit into memory: at most {cap.most} from now on,"
                f" more are tried in {duration(cap.wait)}",
            )

    def _due(self) -> None:
        cap, size = self.cap, self._batch_size
        if cap is None or self._model.stopping:
            return
        more = raised(cap, size, self._model.clock.now())
        self._set(more)
        if more is not None:
            self._model.reports.add(
                "batch-raised", f"batches of up to {more.most} requests are tried again: {cap.too_large} did not fit"
            )

    def follow_settings(self) -> None:
        """Forget the cap if the batch size was set: its operator may know that it fits now."""
        size = self._model.settings.batch_size
        if size != self._batch_size:
            self._batch_size = size
            self._set(None)

    def _set(self, cap: Cap | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        before, self.cap = self.cap, cap
        if cap is not None:
            # Not `self._due`: an unregistered version must not stay in memory until then.
            own = ref(self)
            self._timer = self._model.clock.later(cap.due - self._model.clock.now(), lambda: _due(own()))
        if (before and before.most) != (cap and cap.most):
            self._model.path.limit_batches(None if cap is None else cap.most)
            self._model.dispatcher.wake()


def fitting_of(model: ModelVersion) -> Fitting | None:
    """Return what is known of a version; None if nobody asks its workers."""
    return next((each for each in model.path.too_large if isinstance(each, Fitting)), None)


def _due(fitting: Fitting | None) -> None:
    if fitting is not None:
        fitting._due()


class FittingService(Service):
    """The service."""

    def __init__(self, kernel: Kernel) -> None:
        self._registry = kernel.registry

    def follow(self, model: ModelVersion) -> None:
        (fitting_of(model) or Fitting(model)).follow_settings()

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        if view is not VersionView.DESCRIPTION or (fitting := fitting_of(model)) is None:
            return {}
        return {"batching": {"cap": fitting.document()}}

    def samples(self) -> Samples:
        found = [(each, fitting) for each in self._registry if (fitting := fitting_of(each)) is not None]
        return ([((each.name, each.version), fitting.count) for each, fitting in found],)
