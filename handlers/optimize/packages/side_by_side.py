"""Graphs compiled at the same time, in processes beside this one, as far as there are cores.

    full ──fork──▶ compiled ──┐
    one  ──fork──▶ compiled ──┼─▶ libraries
    rest, here  ──▶ compiled ─┘

Torch exports and generates code on one thread, and so does the C++ compiler. What a process that dies has not done is
done here. A fork keeps the locks of other threads, so a process that has some starts none.
"""

import contextlib
import os
import pickle
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from tsctl.handlers.optimize.packages.recording import NotExportable

# Starts a function in a process of its own, and returns what waits for its result. That must be called once, and raises
# ChildProcessError if the process has died. handlers/process/forking.py implements it with a fork.
Apart = Callable[[Callable[[], bytes]], Callable[[], bytes]]
Work = Callable[[], dict[str, str]]
T = TypeVar("T")


def run_side_by_side(works: Mapping[str, Work], beside: Apart | None) -> dict[str, dict[str, str]]:
    """Return the weights that each graph's library uses, by the graph's name.

    Args:
        works: compile a graph each, those that take longest first.
        beside: starts processes; None: all is done here.

    Raises:
        NotExportable: a graph cannot be exported.
        Exception: what a compiler raises here.
    """
    cores = len(os.sched_getaffinity(0))
    others = [] if beside is None or threading.active_count() > 1 else list(works)[: min(cores, len(works)) - 1]
    waiting: dict[str, Callable[[], dict[str, str]]] = {}
    done: dict[str, dict[str, str]] = {}
    refused: NotExportable | None = None
    try:
        with contextlib.suppress(OSError):  # no memory or no pid for a process
            for name in others:
                assert beside is not None
                waiting[name] = start(beside, works[name], NotExportable)
        done |= {name: work() for name, work in works.items() if name not in waiting}
    finally:
        for name, wait in waiting.items():
            try:
                done[name] = wait()
            except ChildProcessError:
                continue  # it has died
            except NotExportable as error:
                refused = error
    if refused is not None:
        raise refused
    return {name: done[name] if name in done else work() for name, work in works.items()}


def start(apart: Apart, work: Callable[[], T], *refusals: type[Exception]) -> Callable[[], T]:
    """Start a function in a process of its own; return what waits for its result.

    That raises ChildProcessError if the process has died, and an exception of these kinds where the function did.
    """

    def told() -> bytes:
        try:
            return pickle.dumps(work())
        except refusals as error:
            kind = next(kind for kind in refusals if isinstance(error, kind))
            return pickle.dumps(error if type(error) is kind else kind(str(error)))  # a class of ours is there, too

    waiting = apart(told)

    def heard() -> T:
        result: Any = pickle.loads(waiting())
        if isinstance(result, Exception):
            raise result
        return cast("T", result)

    return heard
