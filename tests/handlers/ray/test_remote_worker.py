"""One worker as the bridge holds it; its actor is the test."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.handlers.ray.test_frames import frame_of
from tests.kit.ray_cluster import FakeActor, FakeCluster, facts, until
from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader
from tsctl.handlers.ray import remote_worker as room
from tsctl.handlers.ray.errors import ActorLost, ActorSilent, MethodFailed
from tsctl.handlers.ray.messages import ActorOptions, BridgeReport, Placed, RemoteEnded, StartRemote, Waits
from tsctl.handlers.ray.node.process import ProcessNews
from tsctl.handlers.ray.node.versions import Versions
from tsctl.handlers.ray.remote_worker import Channels, RemoteWorker

OPTIONS = ActorOptions(num_cpus=2)
ORDER = StartRemote(5, "net/1.0", "/models/net", OPTIONS, 3, {"TS_X": "1"})


class Bench:
    """A worker, and the daemon's ends of its channels."""

    def __init__(self, cluster: FakeCluster | None = None) -> None:
        self.cluster = cluster or FakeCluster()
        self.reports: list[BridgeReport] = []
        self.frames, theirs = socket.socketpair()
        self.frames.setblocking(False)
        self.stdout, out = os.pipe()
        self.stderr, err = os.pipe()
        self.reader = FrameReader()
        self.worker = RemoteWorker(ORDER, Channels(theirs, out, err), self.cluster, self.reports.append)

    @property
    def actor(self) -> FakeActor:
        return self.cluster.actors[-1]

    async def asked(self, method: str) -> FakeActor:
        """Wait for a call of the actor."""
        await until(lambda: bool(self.cluster.actors) and method in self.actor.asked)
        return self.actor

    async def answer(self, method: str, result: Any) -> None:
        (await self.asked(method)).answer(method, result)

    async def start(self) -> None:
        """Let the worker's process start."""
        await self.answer("facts", facts())
        await self.answer("find_copy", True)
        await self.answer("start", 77)
        await self.asked("news")

    async def send(self, *messages: wire.ToWorker) -> None:
        await asyncio.get_running_loop().sock_sendall(self.frames, b"".join(map(wire.encode, messages)))

    async def heard(self, count: int) -> list[wire.ToDaemon]:
        """Wait for so many messages to the daemon."""
        found: list[wire.ToDaemon] = []
        while len(found) < count:
            data = await asyncio.get_running_loop().sock_recv(self.frames, 10**6)
            assert data, "the channel has closed"
            found += [wire.decode_for_daemon(frame) for frame in self.reader.feed(data)]
        return found

    async def end(self) -> RemoteEnded:
        await self.worker.ended()
        [*_, last] = self.reports
        assert isinstance(last, RemoteEnded) and last.number == 5
        await until(lambda: all(actor.killed for actor in self.cluster.actors))
        return last

    def close(self) -> None:
        self.frames.close()
        os.close(self.stdout)
        os.close(self.stderr)


@contextlib.asynccontextmanager
async def worker(cluster: FakeCluster | None = None) -> AsyncIterator[Bench]:
    bench = Bench(cluster)
    try:
        yield bench
    finally:
        bench.worker.kill()
        await bench.worker.ended()
        bench.close()


async def test_a_worker_is_placed_gets_its_files_and_starts() -> None:
    async with worker() as bench:
        await bench.answer("facts", facts("n1"))
        await bench.answer("find_copy", False)
        await bench.answer("unpack", None)
        await bench.answer("start", 77)
        await bench.asked("news")

        assert bench.actor.calls == [
            ("facts", ()),
            ("find_copy", ("digest of /models/net",)),
            ("unpack", ("digest of /models/net", ["piece 1", "piece 2"])),
            ("start", (3, {"TS_X": "1"})),
            ("news", ()),
        ]
        assert (bench.actor.name, bench.actor.options) == ("net/1.0 5.1", OPTIONS)
        assert bench.reports == [Placed(5, "n1", 77)]


async def test_the_daemon_is_told_why_an_actor_has_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PENDING", 0.001)

    async with worker() as bench:
        await until(lambda: len(bench.reports) >= 2)

        assert bench.reports[0] == Waits(5, "it takes 1 CPU, and CPU is in use: 0 free")
        await bench.start()


async def test_another_actor_is_made_while_no_process_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "AGAIN", 0.001)

    async with worker() as bench:
        await bench.answer("facts", facts("n1"))
        (await bench.asked("find_copy")).fail(ActorSilent("does not answer"))
        await until(lambda: len(bench.cluster.actors) == 2)
        await bench.start()

        assert bench.reports[0] == Waits(5, "its actor on node n1 does not answer")
        assert bench.cluster.avoided == ["id of n1"]
        assert bench.cluster.actors[0].killed


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        pytest.param("versions", "node n2 has Python 3.1 and tsctl 9, the daemon's machine ", id="other versions"),
        pytest.param("method", "node n1 cannot start the worker: No space left on device", id="a full disk"),
        pytest.param("files", "the model's files cannot be read: [Errno 2] No such file", id="files"),
        pytest.param("options", "Ray does not accept the options of `ray:`: no such label", id="options"),
    ],
)
async def test_what_would_fail_again_is_a_failed_load(fault: str, error: str) -> None:
    cluster = FakeCluster()
    cluster.refuses = "no such label" if fault == "options" else ""
    cluster.unreadable = fault == "files"

    async with worker(cluster) as bench:
        if fault == "versions":
            await bench.answer("facts", facts("n2")._replace(versions=Versions("3.1", "9")))
        elif fault == "method":
            await bench.answer("facts", facts("n1"))
            (await bench.asked("find_copy")).fail(MethodFailed("No space left on device"))
        elif fault == "files":
            await bench.answer("facts", facts("n1"))

        hello, failed = await bench.heard(2)
        assert isinstance(hello, wire.Hello) and isinstance(failed, wire.LoadFailed)
        assert failed.error.startswith(error)
        assert await bench.end() == RemoteEnded(5, wire.EXIT_LOAD_FAILED)


async def test_a_batch_is_one_call_and_all_else_is_told() -> None:
    async with worker() as bench:
        await bench.start()
        load, predict = wire.Load("m", "1.0", "/m", "h.py", {}, 1, 1), wire.Predict(1, [])
        await bench.send(load, predict, wire.Threads(2))
        await bench.asked("predict")
        await until(lambda: len(bench.actor.calls) == 7)

        assert sorted(bench.actor.calls[4:], key=lambda call: str(call[1])) == [
            ("tell", (0, frame_of(load))),
            ("predict", (1, frame_of(predict))),
            ("tell", (2, frame_of(wire.Threads(2)))),
        ]
        done = wire.Done(1, [], 0.5)
        bench.actor.answer("predict", (0, frame_of(done)))
        assert await bench.heard(1) == [done]


async def test_answers_reach_the_daemon_in_the_order_in_which_the_process_sent_them() -> None:
    async with worker() as bench:
        await bench.start()
        await bench.send(wire.Predict(1, []), wire.Predict(2, []))
        await until(lambda: bench.actor.asked.count("predict") == 2)
        sent: list[wire.ToDaemon] = [wire.Chunk(1, []), wire.Done(1, [], 0.5), wire.Chunk(2, []), wire.Done(2, [], 0.5)]

        bench.actor.answer("predict", (1, frame_of(sent[1])))  # before the news of its piece
        bench.actor.answer("predict", (3, frame_of(sent[3])))
        bench.actor.answer("news", ProcessNews([(0, frame_of(sent[0])), (2, frame_of(sent[2]))], b"", b"", None))

        assert await bench.heard(4) == sent


async def test_output_is_passed_on_and_the_code_of_an_ended_process_reported() -> None:
    async with worker() as bench:
        await bench.start()
        await bench.answer("news", ProcessNews([], b"printed\n", b"a traceback\n", None))
        await bench.answer("news", ProcessNews([], b"more\n", b"", 7))

        assert await bench.end() == RemoteEnded(5, 7)
        assert (os.read(bench.stdout, 100), os.read(bench.stderr, 100)) == (b"printed\nmore\n", b"a traceback\n")


@pytest.mark.parametrize(
    ("error", "lost", "avoided"),
    [
        pytest.param(ActorSilent("does not answer"), "its actor on node n1 does not answer", ["id of n1"], id="node"),
        pytest.param(ActorLost("died: killed"), "its actor on node n1 died: killed", [], id="actor"),
    ],
)
async def test_a_worker_whose_actor_is_lost_has_ended(error: Any, lost: str, avoided: list[str]) -> None:
    async with worker() as bench:
        await bench.start()
        await bench.send(wire.Predict(1, []))
        (await bench.asked("predict")).fail(error)

        assert await bench.end() == RemoteEnded(5, -9, lost)
        assert bench.cluster.avoided == avoided


async def test_a_worker_that_the_daemon_lets_go_leaves_by_itself() -> None:
    async with worker() as bench:
        await bench.start()
        bench.frames.shutdown(socket.SHUT_WR)
        await until(lambda: ("close", ()) in bench.actor.calls)
        await bench.answer("news", ProcessNews([], b"", b"", 0))

        assert await bench.end() == RemoteEnded(5, 0)
