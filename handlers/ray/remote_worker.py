"""One worker, as the bridge holds it: an actor, and the daemon's ends of a worker's channels.

    WAITING ──actor placed──▶ PLACED ──files there──▶ process started ──▶ RELAYING ──▶ ended
       ▲                        │
       └───── nothing has run ──┘  tried again, until the daemon ends the worker: its startup timeout

Once the process runs, nothing is tried again here: the actor is lost, or the process has ended, and the daemon's
pool starts another worker.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader
from tsctl.handlers.ray.errors import ActorSilent, CallError, MethodFailed, OptionsRefused
from tsctl.handlers.ray.frames import PREDICT, FrameOrder, tag_of
from tsctl.handlers.ray.messages import ActorOptions, BridgeReport, Placed, RemoteEnded, StartRemote, Waits
from tsctl.handlers.ray.node.actor import ActorFacts
from tsctl.handlers.ray.node.versions import mismatch, versions_here

PENDING = 2.0  # seconds until the daemon is told why an actor has no node yet, and again
AGAIN = 1.0  # seconds between two actors, while no process runs
KILLED = -9


class Actor(Protocol):
    """An actor, as `RayActor` is one."""

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method; raise a `CallError` if there is no result."""

    def send(self, method: str, *arguments: Any) -> None:
        """Call a method, and pass over its result."""

    def kill(self) -> None:
        """End the actor now. Blocks."""


class Actors(Protocol):
    """Where actors come from, as `Cluster` does it."""

    async def connect(self, waits: Callable[[str], None]) -> None: ...

    def make(self, name: str, options: ActorOptions) -> Actor: ...

    async def why_pending(self, options: ActorOptions) -> str: ...

    async def digest_of(self, directory: Path) -> str: ...

    async def pieces_of(self, digest: str, directory: Path) -> list[Any]: ...

    def avoid(self, node_id: str, name: str) -> None: ...


class Channels(NamedTuple):
    """A worker's ends of its channels to the daemon: frames, and two pipes."""

    frames: socket.socket
    stdout: int
    stderr: int

    def close(self) -> None:
        """Close the pipes."""
        os.close(self.stdout)
        os.close(self.stderr)


class UnfitNode(Exception):
    """A node cannot run the worker, nor could another one like it; the message is for people."""


class RemoteWorker(asyncio.Protocol):
    """Relays between one worker's channels and its actor. As a protocol it is the bridge's end of the frames."""

    def __init__(
        self, order: StartRemote, channels: Channels, cluster: Actors, report: Callable[[BridgeReport], None]
    ) -> None:
        self._order = order
        self._channels = channels
        self._cluster = cluster
        self._report = report
        self._actor: Actor | None = None
        self._facts: ActorFacts | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._reader = FrameReader()
        self._told = 0  # frames
        self._tries = 0
        self._arrived = FrameOrder()
        self._calls: set[asyncio.Future[None]] = set()
        self._lost: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._running = asyncio.ensure_future(self._run())

    def kill(self) -> None:
        """End the worker now."""
        self._running.cancel()

    async def ended(self) -> None:
        """Wait for the end."""
        await asyncio.wait({self._running})

    async def _run(self) -> None:
        end = RemoteEnded(self._order.number, KILLED)
        try:
            await self._start()
            end = RemoteEnded(self._order.number, await self._relay())
        except asyncio.CancelledError:
            pass  # the daemon knows why
        except UnfitNode as error:
            failed = wire.LoadFailed(str(error)[: wire.LONGEST_TEXT], "")
            with contextlib.suppress(OSError):
                self._channels.frames.sendall(wire.encode(wire.Hello(0)) + wire.encode(failed))
            end = RemoteEnded(self._order.number, wire.EXIT_LOAD_FAILED)
        except CallError as error:
            end = RemoteEnded(self._order.number, KILLED, self._why_lost(error))
        finally:
            for call in self._calls:
                call.cancel()
            self._drop_actor()
            if self._transport is not None:
                self._transport.close()  # once all is written
            else:
                self._channels.frames.close()
            self._channels.close()
            self._report(end)

    # Until the process runs.

    async def _start(self) -> None:
        while True:
            try:
                await self._cluster.connect(self._wait)
                await self._try()
                return
            except MethodFailed as error:
                node = "a node" if self._facts is None else f"node {self._facts.node}"
                raise UnfitNode(f"{node} cannot start the worker: {error}") from error
            except OSError as error:
                raise UnfitNode(f"the model's files cannot be read: {error}") from error
            except OptionsRefused as error:
                raise UnfitNode(f"Ray does not accept the options of `ray:`: {error}") from error
            except CallError as error:
                self._wait(self._why_lost(error))
                self._drop_actor()
                await asyncio.sleep(AGAIN)

    async def _try(self) -> None:
        order = self._order
        self._facts = None
        self._tries += 1
        self._actor = actor = self._cluster.make(f"{order.name} {order.number}.{self._tries}", order.options)
        self._facts = facts = await self._placed(actor)
        if (difference := mismatch(facts.node, facts.versions, versions_here())) != "":
            raise UnfitNode(difference)
        directory = Path(order.model_dir)
        digest = await self._cluster.digest_of(directory)
        if not await actor.call("find_copy", digest):
            await actor.call("unpack", digest, await self._cluster.pieces_of(digest, directory))
        pid = await actor.call("start", order.threads, order.variables)
        self._report(Placed(order.number, facts.node, pid))

    async def _placed(self, actor: Actor) -> ActorFacts:
        """Wait for a node; tell the daemon the reason meanwhile."""
        there = asyncio.ensure_future(actor.call("facts"))
        try:
            while not (await asyncio.wait({there}, timeout=PENDING))[0]:
                self._wait(await self._cluster.why_pending(self._order.options))
            return ActorFacts(*there.result())
        finally:
            there.cancel()

    def _wait(self, reason: str) -> None:
        self._report(Waits(self._order.number, reason))

    # While the process runs.

    async def _relay(self) -> int:
        """Pass frames and output on; return the process's return code."""
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=self._channels.frames)
        news = asyncio.ensure_future(self._pass_news())
        try:
            await asyncio.wait({news, self._lost}, return_when=asyncio.FIRST_COMPLETED)
            return (news if news.done() else self._lost).result()
        finally:
            news.cancel()

    async def _pass_news(self) -> int:
        assert self._actor is not None
        while True:
            frames, out, err, code = await self._actor.call("news")
            for number, frame in frames:
                self._arrive(number, frame)
            for pipe, data in ((self._channels.stdout, out), (self._channels.stderr, err)):
                if data:
                    await asyncio.to_thread(_write_all, pipe, data)
            if code is not None:
                return int(code)

    async def _predict(self, number: int, frame: bytes) -> None:
        assert self._actor is not None
        try:
            self._arrive(*await self._actor.call("predict", number, frame))
        except CallError as error:
            if not self._lost.done():
                self._lost.set_exception(error)

    def _arrive(self, number: int, frame: bytes) -> None:
        for each in self._arrived.take_frame(number, frame):
            if self._transport is not None and not self._transport.is_closing():
                self._transport.writelines((wire.LENGTH.pack(len(each)), each))

    # asyncio.Protocol: the frames from the daemon.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment] # of a socket

    def data_received(self, data: bytes) -> None:
        for each in self._reader.feed(data):
            frame, number = bytes(each), self._told
            self._told += 1
            if tag_of(frame) == PREDICT:
                call = asyncio.ensure_future(self._predict(number, frame))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
            else:
                self._send("tell", number, frame)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - either way the daemon has left
        if not self._running.done():
            self._send("close")

    def _send(self, method: str, *arguments: Any) -> None:
        if self._actor is not None:
            self._actor.send(method, *arguments)  # if that fails, so do the news

    # The end.

    def _why_lost(self, error: CallError) -> str:
        """Return why the actor is lost, in words; from now on its node is avoided if that does not answer."""
        facts = self._facts
        if facts is None:
            return f"an actor {error}"
        if isinstance(error, ActorSilent):
            self._cluster.avoid(facts.node_id, facts.node)
        return f"its actor on node {facts.node} {error}"

    def _drop_actor(self) -> None:
        actor, self._actor = self._actor, None
        if actor is not None:
            asyncio.get_running_loop().run_in_executor(None, actor.kill)


def _write_all(pipe: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # the daemon has left
        while data:
            data = data[os.write(pipe, data) :]
