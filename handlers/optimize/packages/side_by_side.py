"""Graphs compiled at the same time, in processes beside this one, as far as there are cores.

    full ──fork──▶ compiled ──┐
    one  ──fork──▶ compiled ──┼─▶ libraries
    rest, here  ──▶ compiled ─┘

Torch exports and generates code on one thread, and so does the C++ compiler. What a process that dies has not done is
done here. A fork keeps the locks of other threads, so a process that has some starts none.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from tsctl.handlers.optimize.packages.recording import NotExportable

# Starts a function in a process of its own, and returns what waits for its result. That must be called once, and raises
# ChildProcessError if the process has died. handlers/process/forking.py implements it with a fork.
Apart = Callable[[Callable[[], bytes]], Callable[[], bytes]]
Work = Callable[[], dict[str, str]]


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
    waiting: dict[str, Callable[[], bytes]] = {}
    done: dict[str, dict[str, str]] = {}
    try:
        with contextlib.suppress(OSError):  # no memory or no pid for a process
            for name in others:
                assert beside is not None
                waiting[name] = beside(partial(_encoded, works[name]))
        done = {name: work() for name, work in works.items() if name not in waiting}
    finally:
        ended = {name: _result(wait) for name, wait in waiting.items()}
    for name, result in ended.items():
        if result is not None and result.refused:
            raise NotExportable(result.refused)
        done[name] = works[name]() if result is None else result.held
    return {name: done[name] for name in works}


class _Made(msgspec.Struct):
    """The result of a process: `held` of its graph, or why the model cannot be exported."""

    held: dict[str, str] = {}
    refused: str = ""


def _encoded(work: Work) -> bytes:
    try:
        return msgspec.json.encode(_Made(work()))
    except NotExportable as error:
        return msgspec.json.encode(_Made(refused=str(error)))


def _result(wait: Callable[[], bytes]) -> _Made | None:
    """Wait for a process; None if it has died."""
    try:
        return msgspec.json.decode(wait(), type=_Made)
    except ChildProcessError:
        return None
