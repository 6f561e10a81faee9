"""An actor with a real worker process; Ray's part is played."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.handlers.ray.test_frames import frame_of
from tests.kit.archives import write_files
from tests.kit.in_loop import InLoop
from tsctl.handlers import wire
from tsctl.handlers.ray.node import actor as room
from tsctl.handlers.ray.node.actor import WorkerActor
from tsctl.handlers.ray.node.model_files import digest_of, pieces_of
from tsctl.handlers.ray.node.process import MOST_OUTPUT

pytestmark = pytest.mark.slow

HANDLER = b"""
import os, sys

def handle(data, context):
    if data is None:
        return None
    words = [bytes(row["body"]).decode() for row in data]
    if words == ["exit"]:
        os._exit(7)
    if words == ["print"]:
        print("x" * 2**21)
    return [f"{word} {os.getcwd()} {os.environ['GREETING']} {context.system_properties['gpu_id']}" for word in words]
"""


class Node:
    """A node with one actor, whose process has loaded the model."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, gpu: bool = False) -> None:
        monkeypatch.setenv("TSCTL_RAY_CACHE", str(folder / "cache"))
        monkeypatch.setattr(room, "node_id", lambda: "abcdefgh1234")
        monkeypatch.setattr(room, "has_gpu", lambda: gpu)
        monkeypatch.setattr(room, "fetch", lambda piece: piece)
        self.model = write_files(folder / "model", {"mine.py": HANDLER})
        self.actor = WorkerActor()
        self.output = b""
        self.code: int | None = None
        self._told = 0
        self._frames: list[tuple[int, bytes]] = []

    async def start(self) -> list[wire.ToDaemon]:
        digest = digest_of(self.model)
        assert not await self.actor.find_copy(digest)
        await self.actor.unpack(digest, list(pieces_of(self.model, digest)))
        assert await self.actor.start(1, {"GREETING": "hello"}) > 0
        await self.tell(wire.Load("m", "1.0", str(self.model), "mine.py", {}, 8, 1, None, group="/none", in_place=True))
        return await self.heard(2)

    def next_number(self) -> int:
        self._told += 1
        return self._told - 1

    async def tell(self, message: wire.ToWorker) -> None:
        await self.actor.tell(self.next_number(), frame_of(message))

    async def heard(self, count: int) -> list[wire.ToDaemon]:
        """Wait for so many further frames, or the process's end."""
        while len(self._frames) < count and self.code is None:
            news = await asyncio.wait_for(self.actor.news(), 30)
            self._frames += news.frames
            self.output += news.stdout + news.stderr
            self.code = news.code
        found, self._frames = self._frames[:count], self._frames[count:]
        return [wire.decode_for_daemon(frame) for _, frame in found]


def predict(batch: int, body: bytes) -> bytes:
    return frame_of(wire.Predict(batch, [wire.Row("id", [], [("body", "", body)])]))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return InLoop(lambda: Node(tmp_path, monkeypatch))


async def test_batches_run_in_the_nodes_copy_with_the_daemons_variables(node: Node) -> None:
    hello, loaded = await node.start()
    assert isinstance(hello, wire.Hello) and isinstance(loaded, wire.Loaded)
    second = asyncio.ensure_future(node.actor.predict(2, predict(2, b"b")))  # overtakes the first
    await asyncio.sleep(0)
    number, frame = await node.actor.predict(1, predict(1, b"a"))
    done = wire.decode_for_daemon(frame)
    assert isinstance(done, wire.Done)

    copy = next((node.model.parent / "cache").glob("*/mine.py")).parent
    assert (number, done.batch, done.answers[0].body) == (2, 1, f"a {copy} hello None".encode())
    assert (await second)[0] == 3

    await node.actor.close()
    await node.heard(1)
    assert node.code == 0


async def test_a_worker_sees_the_gpu_that_ray_gave_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(tmp_path, monkeypatch, gpu=True)
    await node.start()
    done = wire.decode_for_daemon((await node.actor.predict(1, predict(1, b"a")))[1])
    assert isinstance(done, wire.Done)
    assert done.answers[0].body.endswith(b" 0")
    await node.actor.close()
    await node.heard(1)


async def test_a_handler_that_ends_its_process_does_not_end_the_actor(node: Node) -> None:
    await node.start()
    waits = asyncio.ensure_future(node.actor.predict(1, predict(1, b"exit")))
    await node.heard(1)

    assert node.code == 7
    assert not waits.done()
    waits.cancel()


async def test_output_waits_in_the_process_until_it_is_fetched(node: Node) -> None:
    await node.start()
    done = asyncio.ensure_future(node.actor.predict(1, predict(1, b"print")))
    sizes: list[int] = []
    while sum(sizes) < 2**21 + 1:  # the batch may end before the last of it is fetched
        news = await asyncio.wait_for(node.actor.news(), 30)
        sizes.append(len(news.stdout))

    assert sum(sizes) == 2**21 + 1
    assert max(sizes) < MOST_OUTPUT + 2**16
    await done
    await node.actor.close()
    await node.heard(1)


async def test_an_actor_says_where_it_is(node: Node) -> None:
    facts = await node.actor.facts()

    assert facts.node_id == "abcdefgh1234"
    assert facts.node.endswith("/abcdefgh")
