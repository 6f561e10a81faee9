"""Graphs are compiled in processes beside this one, as far as there are cores."""

import gc
import os
import signal
import threading
from collections.abc import Callable
from functools import partial

import pytest

from tests.handlers.optimize.conftest import Forked
from tsctl.handlers.optimize.packages.recording import NotExportable
from tsctl.handlers.optimize.packages.side_by_side import Work, run_side_by_side, start
from tsctl.handlers.process.forking import start_apart
from tsctl.handlers.sdk.errors import HandlerError

pytestmark = pytest.mark.slow


def where() -> dict[str, str]:
    return {"process": str(os.getpid())}


def run(cores: int, monkeypatch: pytest.MonkeyPatch, **works: Work) -> dict[str, dict[str, str]]:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
    gc.collect()  # ends gRPC's thread, if tests before have left its objects: a process with threads is not forked
    return run_side_by_side(works, partial(start_apart, 1, ()))


@pytest.mark.parametrize(("cores", "processes"), [(1, 1), (2, 2), (3, 3), (64, 3)])
def test_each_core_gets_a_graph(cores: int, processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(cores, monkeypatch, full=where, one=where, rest=where)

    assert list(found) == ["full", "one", "rest"]
    assert len({held["process"] for held in found.values()}) == processes
    assert found["rest"] == where()


def test_a_process_that_has_other_threads_starts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert run(3, monkeypatch, full=where, rest=where) == {"full": where(), "rest": where()}
    finally:
        over.set()
        thread.join()


def dies_elsewhere(here: int) -> dict[str, str]:
    if os.getpid() != here:
        os.kill(os.getpid(), signal.SIGKILL)
    return where()


def test_what_a_process_that_dies_has_not_done_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(2, monkeypatch, full=partial(dies_elsewhere, os.getpid()), rest=where)["full"] == where()


def refuses() -> dict[str, str]:
    raise NotExportable("it cannot be exported: Unsupported")


@pytest.mark.parametrize("works", [{"full": refuses, "rest": where}, {"full": where, "rest": refuses}])
def test_a_refusal_is_told_wherever_it_happened_and_no_process_is_left(
    works: dict[str, Callable[[], dict[str, str]]], monkeypatch: pytest.MonkeyPatch, forked: Forked
) -> None:
    with pytest.raises(NotExportable, match="it cannot be exported: Unsupported"):
        run(2, monkeypatch, **works)

    assert forked.none_is_left()


def test_an_error_keeps_its_reason_on_the_way_from_another_process() -> None:
    def check() -> None:
        raise HandlerError("`optimize: bf16` cannot be done: no fast path", "no fast path")

    waiting = start(partial(start_apart, 1, ()), check, HandlerError)

    with pytest.raises(HandlerError, match=r"^`optimize: bf16` cannot be done: no fast path$") as told:
        waiting()
    assert told.value.refused == "no fast path"


def test_without_memory_for_a_process_all_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(work: Callable[[], bytes]) -> Callable[[], bytes]:
        raise OSError("no memory")

    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert run_side_by_side({"full": where, "rest": where}, full) == {"full": where(), "rest": where()}
