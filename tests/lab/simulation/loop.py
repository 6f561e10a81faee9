"""An event loop in virtual time: the subset that asyncio and the daemon's objects use.

Two kinds of calls become due: the daemon's timers, which step by a millisecond as uvloop's do, and external events
(frames, deaths, requests). A stall advances the time without a call; the calls due meanwhile are then made in an order
that the stall chooses, because a real loop may see its timers or its sockets first.
"""

import asyncio
import contextlib
import functools
import heapq
import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Coroutine
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tests.lab.simulation.world import World

T = TypeVar("T")
ASIDE = 0.004  # seconds that work in another thread takes


class Late(Enum):
    """The calls that come first after a stall."""

    BY_TIME = auto()
    TIMERS = auto()
    OUTSIDE = auto()


class Call:
    """A call to be made, which can be cancelled; armed until then."""

    __slots__ = ("arguments", "call", "due")

    def __init__(self, call: Callable[..., Any], arguments: tuple[Any, ...], due: float) -> None:
        self.call: Callable[..., Any] | None = call
        self.arguments = arguments
        self.due = due

    def __repr__(self) -> str:
        call: Any = self.call
        while isinstance(call, functools.partial):
            call = call.args[0] if call.args else call.func
        return f"{getattr(call, '__qualname__', call)} of {getattr(call, '__self__', '?')!r} at {self.due:.3f}"

    def cancel(self) -> None:
        self.call = None
        self.arguments = ()

    @property
    def armed(self) -> bool:
        return self.call is not None


_Heap = list[tuple[float, int, Call]]


class VirtualLoop(asyncio.AbstractEventLoop):
    """A loop advanced step by step, and the daemon's clock on the loop.

    Args:
        world: has the other ends of workers' sockets and outputs, and the disk; is told of each uncaught exception.

    Attributes:
        stalled: when the last stall ended; -inf before the first.
    """

    def __init__(self, world: "World") -> None:
        self.stalled = -math.inf
        self._world = world
        self._late = Late.BY_TIME
        self._now = 1000.0
        self._ready: deque[Call] = deque()
        self._timers: _Heap = []
        self._outside: _Heap = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._count = itertools.count()
        self._free = self._now  # when the other thread will be free

    # The daemon's clock.

    def now(self) -> float:
        return self._now

    def soon(self, call: Callable[[], None]) -> None:
        self.call_soon(call)

    def later(self, delay: float, call: Callable[[], None]) -> Call:
        return self.call_later(max(1, math.ceil(delay * 1000)) / 1000, call)

    def aside(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        result = work()
        self._free = max(self._free, self._now) + ASIDE
        self.outside(self._free - self._now, then, result)

    # Drive the loop.

    def outside(self, delay: float, call: Callable[..., None], *arguments: Any) -> Call:
        """Schedule an external event after so many seconds."""
        due = self._now + delay
        made = Call(call, arguments, due)
        heapq.heappush(self._outside, (due, next(self._count), made))
        return made

    def stall(self, seconds: float, late: Late) -> None:
        """Stay busy for so many seconds."""
        self._now += seconds
        self.stalled = self._now
        self._late = late

    @property
    def armed(self) -> list[Call]:
        """The daemon's timers that are not cancelled, the next first."""
        return [call for _, _, call in sorted(self._timers) if call.armed]

    @property
    def next(self) -> float:
        """When the next call is due, of those that are not to be made now; inf if there is none."""
        return min(_head(self._timers), _head(self._outside))

    @property
    def at_rest(self) -> bool:
        """Whether no more calls are due now."""
        return not self._ready and self.next > self._now

    def step(self) -> None:
        """Make the next call, advancing the time to its due time. There must be one."""
        if self._ready:
            self._make(self._ready.popleft())
            return
        timer, outside = _head(self._timers), _head(self._outside)
        if timer <= self._now and outside <= self._now and self._late is not Late.BY_TIME:
            heap = self._timers if self._late is Late.TIMERS else self._outside
        else:
            heap = self._timers if timer <= outside else self._outside
        due, _, call = heapq.heappop(heap)
        if due > self._now:
            self._now = due
        self._make(call)

    def close(self) -> None:
        """End running tasks after an aborted run; pending connects complete first, so that their sockets get closed."""
        for _ in range(len(self._ready)):
            self._make(self._ready.popleft())
        for task in self._tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # destroyed on purpose
                coroutine = task.get_coro()
                if coroutine is not None:
                    with contextlib.suppress(RuntimeError):  # it waits once more, to clear up
                        coroutine.close()

    def _make(self, call: Call) -> None:
        made, call.call = call.call, None
        if made is None:
            return
        try:
            made(*call.arguments)
        except Exception as error:  # noqa: BLE001 - the last resort for any error
            self._world.escaped(error)

    # asyncio's interface of a loop. Contexts are ignored: the daemon keeps nothing in one.

    def get_debug(self) -> bool:
        return False

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, **_: Any
    ) -> Call:
        call = Call(callback, args, self._now)
        self._ready.append(call)
        return call

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, **_: Any
    ) -> Call:
        # 1e-6 is for float rounding. uvloop counts whole milliseconds from its own time, rounded down.
        steps = math.floor(self._now * 1000 + 1e-6) + math.ceil(delay * 1000 - 1e-6)
        due = max(self._now, steps / 1000)
        call = Call(callback, args, due)
        heapq.heappush(self._timers, (due, next(self._count), call))
        return call

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, **_: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name)
        self._tasks.append(task)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._world.escaped(context.get("exception") or RuntimeError(str(context.get("message"))))

    def run_in_executor(self, _: Any, func: Callable[..., Any], *_arguments: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        future = self.create_future()
        try:
            self.outside(self._world.write(func), _settle, future, None)
        except OSError as error:
            self.outside(0.001, _settle, future, error)
        return future

    async def connect_read_pipe(self, protocol_factory: Any, pipe: Any) -> Any:
        os.close(pipe.fileno())  # as uvloop does; the object itself has nothing to close
        self._world.pipe(protocol_factory())

    async def create_unix_connection(self, protocol_factory: Any, path: Any = None, **how: Any) -> Any:
        how["sock"].close()
        protocol = protocol_factory()
        return self._world.connect(protocol), protocol


def _head(heap: _Heap) -> float:
    while heap:
        if heap[0][2].call is not None:
            return heap[0][0]
        heapq.heappop(heap)
    return math.inf


def _settle(future: "asyncio.Future[None]", error: OSError | None) -> None:
    if not future.done():
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
