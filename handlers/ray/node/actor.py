"""The actor that holds one worker's process on a node: frames in, frames out.

The process is an ordinary worker (handlers/worker.py): user code does not run in the actor, so a handler that crashes
ends its own process, and the exit code is reported.

    bridge ──▶ predict(number, frame) ──▶ process      returns that batch's Done: one call a batch
           ──▶ tell(number, frame)    ──▶              any other frame
           ◀── news() ◀────────────────── process      all other frames, output, the end; one call always waits

Ray runs calls in any order, so frames are numbered, in both directions (frames.py). Ray is imported when an actor asks
it something: tests of an actor do without.
"""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tsctl.handlers import wire
from tsctl.handlers.orders import THREAD_VARIABLES
from tsctl.handlers.own_process import malloc_variables
from tsctl.handlers.ray.frames import LOAD, FrameOrder, batch_of, tag_of
from tsctl.handlers.ray.node.model_files import Copies, cache_dir
from tsctl.handlers.ray.node.process import NodeProcess, ProcessNews
from tsctl.handlers.ray.node.versions import Versions, versions_here


def node_id() -> str:
    """Return the id of the node that this process runs on."""
    import ray

    return str(ray.get_runtime_context().get_node_id())


def has_gpu() -> bool:
    """Return whether this process was given a GPU; it sees no other."""
    import ray

    return bool(ray.get_gpu_ids())


def fetch(reference: Any) -> bytes:
    """Return the object that a reference names. Blocks."""
    import ray

    piece: bytes = ray.get(reference)
    return piece


class ActorFacts(NamedTuple):
    """The place of an actor: the node's id, its name for people, and the versions there."""

    node_id: str
    node: str
    versions: Versions


class WorkerActor:
    """The methods of an actor; `start` is called before any that moves frames."""

    def __init__(self) -> None:
        self._copies: Copies | None = None
        self._directory: Path | None = None
        self._process: NodeProcess | None = None
        self._order = FrameOrder()
        self._changed = asyncio.Event()

    async def facts(self) -> ActorFacts:
        """Return where the actor is."""
        here = node_id()
        return ActorFacts(here, f"{socket.gethostname()}/{here[:8]}", versions_here())

    async def find_copy(self, digest: str) -> bool:
        """Return whether the node has the model's files; if so, they are used by this worker."""
        self._copies = Copies(cache_dir())
        self._directory = await asyncio.to_thread(self._copies.find, digest)
        return self._directory is not None

    async def unpack(self, digest: str, pieces: list[Any]) -> None:
        """Unpack the model's files, unless another worker of the node does.

        Args:
            pieces: references to the objects that hold them.
        """
        assert self._copies is not None

        def fetched() -> Iterator[bytes]:
            for piece in pieces:
                yield fetch(piece)

        self._directory = await asyncio.to_thread(self._copies.unpack, digest, fetched())

    async def start(self, threads: int, variables: dict[str, str]) -> int:
        """Start the worker's process; return its pid."""
        assert self._directory is not None
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TSCTL_")}
        environment |= variables | dict.fromkeys(THREAD_VARIABLES, str(threads)) | malloc_variables(environment)
        self._process = NodeProcess(self._directory, environment, self._changed.set)
        await self._process.connect()
        return self._process.pid

    async def predict(self, number: int, frame: bytes) -> tuple[int, bytes]:
        """Run a batch; return the number and the bytes of its Done. Never returns if the process ends."""
        assert self._process is not None
        done = self._process.done_of(batch_of(frame))
        self._pass_on(number, frame)
        return await done

    async def tell(self, number: int, frame: bytes) -> None:
        """Send the process any other frame."""
        self._pass_on(number, self._localized(frame) if tag_of(frame) == LOAD else frame)

    async def news(self) -> ProcessNews:
        """Return the news, as soon as there is any."""
        assert self._process is not None
        while not self._process.news:
            self._changed.clear()
            await self._changed.wait()
        return self._process.take_news()

    async def close(self) -> None:
        """Let the process leave: nothing more will be sent."""
        assert self._process is not None
        self._process.close()

    def _pass_on(self, number: int, frame: bytes) -> None:
        assert self._process is not None
        for each in self._order.take_frame(number, frame):
            self._process.write(each)

    def _localized(self, frame: bytes) -> bytes:
        """Return a Load with this node's directory and GPU: Ray shows a worker its own GPUs only."""
        load = wire.decode_for_worker(frame)
        assert isinstance(load, wire.Load)
        gpu = 0 if has_gpu() else None
        local = msgspec.structs.replace(load, model_dir=str(self._directory), gpu_id=gpu, group="", in_place=False)
        return bytes(wire.encode(local)[wire.LENGTH.size :])
