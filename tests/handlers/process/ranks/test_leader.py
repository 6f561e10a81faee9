"""Rank 0 and the others: what they are sent, and how the group ends. The other ranks are played by the test."""

import queue
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.handlers.samples import row
from tests.handlers.test_worker import load_of
from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader
from tsctl.handlers.process.ranks import leader
from tsctl.handlers.process.ranks.leader import Leader

PATIENCE = 20.0  # seconds


class PlayedRank:
    """A rank without a process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.ours, self.theirs = socket.socketpair()
        self.ours.settimeout(PATIENCE)
        self.pid = 1000 + int(environment["RANK"])
        self.returncode: int | None = None
        self.killed = False
        self._reader = FrameReader()
        self._messages: list[wire.ToWorker] = []

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            raise subprocess.TimeoutExpired("rank", timeout or 0.0)
        return self.returncode

    def kill(self) -> None:
        self.killed = True

    def die(self, code: int) -> None:
        self.returncode = code
        self.ours.close()

    def report(self, message: wire.ToDaemon) -> None:
        self.ours.sendall(wire.encode(message))

    def hear(self) -> wire.ToWorker:
        while not self._messages:
            self._messages += [wire.decode_for_worker(frame) for frame in self._reader.feed(self.ours.recv(65536))]
        return self._messages.pop(0)


class Bench:
    """A leader, and the ranks it has started."""

    def __init__(self, model_dir: Path, count: int, *, each: bool = True, gpus: list[str] | None = None) -> None:
        self.ranks: list[PlayedRank] = []
        self.sent: queue.Queue[wire.ToDaemon] = queue.Queue()
        self.ends: queue.Queue[tuple[int, str]] = queue.Queue()
        load = load_of(model_dir)
        load.ranks, load.gpus, load.group = wire.Ranks(count, each=each), gpus or [], "/a/group"
        self.leader = Leader(load, self.sent.put, self._end, self._start, 29500)

    def _end(self, code: int, text: str) -> None:
        self.ends.put((code, text))

    def _start(self, environment: Mapping[str, str]) -> tuple[PlayedRank, socket.socket]:
        rank = PlayedRank(environment)
        self.ranks.append(rank)
        return rank, rank.theirs

    def close(self) -> None:
        for rank in self.ranks:
            rank.ours.close()
        self.leader.watching.join(PATIENCE)
        for rank in self.ranks:
            rank.theirs.close()


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the variables that rank 0 sets for itself."""
    monkeypatch.setattr("os.environ", {"PATH": "/bin"})


@pytest.fixture
def make(model_dir: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(count: int = 2, *, each: bool = True, gpus: list[str] | None = None) -> Bench:
        made.append(Bench(model_dir, count, each=each, gpus=gpus))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


Make = Callable[..., Bench]
LOADED = wire.Loaded(0.1, False)


def in_thread(call: Callable[[], object]) -> "queue.Queue[object]":
    """Make a call that waits for the ranks; its result comes in the queue."""
    results: queue.Queue[object] = queue.Queue()
    threading.Thread(target=lambda: results.put(call()), daemon=True).start()
    return results


def test_each_rank_loads_what_the_worker_loads(make: Make) -> None:
    bench = make(3)
    loads = [rank.hear() for rank in bench.ranks]

    assert [load.ranks for load in loads if isinstance(load, wire.Load)] == [wire.Ranks(3, 1), wire.Ranks(3, 2)]
    assert {load.group for load in loads if isinstance(load, wire.Load)} == {""}  # they are in the worker's already
    assert [rank.environment["LOCAL_RANK"] for rank in bench.ranks] == ["1", "2"]


def test_each_rank_has_the_gpu_of_its_number(make: Make) -> None:
    bench = make(2, gpus=["4", "5"])
    load = bench.ranks[0].hear()

    assert isinstance(load, wire.Load)
    assert (load.gpu_id, load.gpus) == (1, [])


def test_the_worker_is_ready_when_all_ranks_are(make: Make) -> None:
    bench = make(3)
    result = in_thread(bench.leader.loaded)
    bench.ranks[0].report(wire.Hello(1001))
    bench.ranks[0].report(LOADED)
    bench.ranks[1].report(LOADED)

    assert result.get(timeout=PATIENCE) is None


def test_a_rank_that_cannot_load_fails_the_load_by_its_name(make: Make) -> None:
    bench = make()
    result = in_thread(bench.leader.loaded)
    bench.ranks[0].report(wire.LoadFailed("ValueError: no such layer", "Traceback …"))
    bench.ranks[0].die(wire.EXIT_LOAD_FAILED)

    failure = result.get(timeout=PATIENCE)

    assert failure == wire.LoadFailed("rank 1: ValueError: no such layer", "Traceback …")
    own = wire.LoadFailed("RuntimeError: connection closed by peer", "")
    assert bench.leader.load_failed(own) == failure  # the first failure is the cause of the second
    assert bench.ends.empty()


def test_the_workers_own_failure_is_told_if_no_other_failed(make: Make) -> None:
    own = wire.LoadFailed("ValueError: no", "")

    assert make().leader.load_failed(own) is own


def test_a_load_that_waits_for_a_rank_that_failed_ends(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "LATE", 0.0)
    bench = make()
    bench.ranks[0].report(wire.LoadFailed("ValueError: no", ""))
    bench.ranks[0].die(wire.EXIT_LOAD_FAILED)

    assert bench.sent.get(timeout=PATIENCE) == wire.LoadFailed("rank 1: ValueError: no", "")
    assert bench.ends.get(timeout=PATIENCE)[0] == wire.EXIT_LOAD_FAILED


def ready(bench: Bench) -> None:
    for rank in bench.ranks:
        assert isinstance(rank.hear(), wire.Load)
        rank.report(LOADED)
    assert bench.leader.loaded() is None


def test_all_ranks_are_sent_a_batch_with_its_values(make: Make) -> None:
    bench = make(3)
    ready(bench)
    batch = wire.Predict(7, [row(b"large")], [wire.Stored(0, 0, 0, 5)])  # the worker has read the value in the arena
    bench.leader.begin_round(7)
    bench.leader.forward(batch)
    bench.leader.forward(wire.Threads(2))

    for rank in bench.ranks:
        heard = rank.hear()
        assert isinstance(heard, wire.Predict)
        assert (heard.batch, bytes(heard.rows[0].params[0][2]), heard.stored) == (7, b"large", [])
        assert rank.hear() == wire.Threads(2)


def test_rank_0_waits_for_the_others_after_a_batch(make: Make) -> None:
    bench = make()
    ready(bench)
    bench.leader.begin_round(7)
    result = in_thread(lambda: bench.leader.end(7, failed=False))
    bench.ranks[0].report(wire.Done(7, [], 0.0))

    assert result.get(timeout=PATIENCE) is None


def test_where_rank_0_runs_the_batches_the_others_are_neither_sent_nor_awaited(make: Make) -> None:
    bench = make(each=False)
    ready(bench)
    bench.leader.begin_round(7)
    bench.leader.forward(wire.Predict(7, [row(b"1")]))
    bench.leader.end(7, failed=False)
    bench.leader.forward(wire.BatchSize(8))

    assert bench.ranks[0].hear() == wire.BatchSize(8)


@pytest.mark.parametrize(
    ("code", "lost"),
    [
        pytest.param(-signal.SIGKILL, wire.MemberLost("rank 1 was killed by SIGKILL", True), id="killed"),
        pytest.param(-signal.SIGSEGV, wire.MemberLost("rank 1 was killed by SIGSEGV", False), id="crashed"),
        pytest.param(-40, wire.MemberLost("rank 1 was killed by signal 40", False), id="by a signal without a name"),
        pytest.param(1, wire.MemberLost("rank 1 exited with code 1", False), id="exited"),
    ],
)
def test_the_group_ends_with_one_of_its_ranks(make: Make, code: int, lost: wire.MemberLost) -> None:
    bench = make()
    ready(bench)
    bench.ranks[0].die(code)

    assert bench.sent.get(timeout=PATIENCE) == lost
    assert bench.ends.get(timeout=PATIENCE) == (wire.EXIT_MEMBER_LOST, f"this worker ends: {lost.reason}")


def test_a_rank_that_has_lost_its_gpu_says_why(make: Make) -> None:
    bench = make()
    ready(bench)
    bench.ranks[0].report(wire.GpuLost("its GPU context is broken: an assert"))
    bench.ranks[0].die(wire.EXIT_GPU_LOST)

    assert bench.sent.get(timeout=PATIENCE) == wire.MemberLost("rank 1: its GPU context is broken: an assert", False)


def test_the_group_ends_if_one_rank_raised_and_another_does_not_end(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader, "LATE", 0.0)
    bench = make()
    ready(bench)
    bench.leader.begin_round(7)
    bench.ranks[0].report(wire.Done(7, [], 0.0, failures=[wire.HandlerFailure([0], "Traceback …")]))

    lost = bench.sent.get(timeout=PATIENCE)
    assert isinstance(lost, wire.MemberLost)
    assert lost.reason == "the handler raised in rank 1, and rank 0 did not end the same call within 0 s"
    assert bench.ends.get(timeout=PATIENCE)[0] == wire.EXIT_MEMBER_LOST


def test_ranks_that_do_not_leave_are_killed(make: Make) -> None:
    bench = make(3)
    ready(bench)
    bench.ranks[0].returncode = 0
    bench.leader.close()

    assert [rank.killed for rank in bench.ranks] == [False, True]
    assert bench.ranks[0].ours.recv(1) == b""  # the end of the connection asks them to leave
    bench.ranks[0].ours.close()
    assert bench.ends.empty()
