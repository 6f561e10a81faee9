"""A function that runs in a process of its own, and leaves this one as it was."""

import os
import signal
from pathlib import Path

import pytest

from tests.kit.null_gpu.cards import cards_or_skip
from tsctl.handlers.process.forking import start_apart

pytestmark = pytest.mark.slow


def test_the_result_comes_back_and_the_process_is_gone() -> None:
    pid = int(start_apart(1, (), lambda: str(os.getpid()).encode())())

    assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_it_has_the_processors_that_a_worker_would_have() -> None:
    (first, *_) = sorted(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)

    assert start_apart(1, [first], lambda: repr(os.sched_getaffinity(0)).encode())() == repr({first}).encode()
    assert os.sched_getaffinity(0) == before


def test_a_result_of_any_length_comes_back() -> None:
    assert start_apart(1, (), lambda: bytes(1_000_000))() == bytes(1_000_000)


def starts_another() -> bytes:
    """Leave a process behind, which has the pipe of the result, too; return its pid."""
    other = os.fork()
    if not other:
        signal.pause()
    return str(other).encode()


def test_a_process_that_it_leaves_behind_holds_up_nothing() -> None:
    other = int(start_apart(1, (), starts_another)())

    os.kill(other, signal.SIGKILL)


@pytest.mark.parametrize(
    ("work", "words"),
    [
        pytest.param(lambda: os.kill(os.getpid(), signal.SIGKILL), "signal 9", id="killed"),
        pytest.param(lambda: 1 / 0, "exit code 1", id="raised"),
        pytest.param(lambda: os._exit(7), "exit code 7", id="left"),
    ],
)
def test_a_process_without_a_result_is_an_error(work: object, words: str) -> None:
    with pytest.raises(ChildProcessError, match=words):
        start_apart(1, (), work)()  # type: ignore[arg-type]


@pytest.mark.heavy
def test_a_process_that_has_only_counted_gpus_is_not_fit_for_forks(tmp_path: Path) -> None:
    told = cards_or_skip(tmp_path).run("""
from tsctl.handlers.process.forking import NotForkable, check_fit
from tsctl.handlers.process.threads import announce_threads

announce_threads(1)
import torch

check_fit()
print(torch.cuda.is_available(), torch.cuda.is_initialized())
try:
    check_fit()
except NotForkable as error:
    print(error)
""")

    assert told.splitlines() == ["True False", "it has initialized CUDA, as `torch.cuda.is_available()` does"]
