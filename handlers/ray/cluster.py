"""The bridge's connection to a Ray cluster: its actors, its nodes, and models as objects.

A node whose actor did not answer is avoided until the head has declared it dead, which takes some 13 s, or it answers
a probe.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tsctl.handlers.ray.errors import ActorLost, ActorSilent, MethodFailed, OptionsRefused
from tsctl.handlers.ray.messages import ActorOptions
from tsctl.handlers.ray.node.actor import WorkerActor
from tsctl.handlers.ray.node.model_files import FilesChanged, digest_of, pieces_of
from tsctl.handlers.ray.nodes import RayNode, selector, why_pending

MOST_DETAIL = 300  # characters of a reason that Ray gives
NOT_INSTALLED = "failed to import"  # in Ray's message about an actor whose module a node does not have


class RayActor:
    """One actor, by Ray's handle."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method; return its result.

        Raises:
            MethodFailed: the method raised.
            ActorSilent: the actor does not answer.
            ActorLost: the actor has ended.
        """
        try:
            return await getattr(self._handle, method).remote(*arguments)
        except RayTaskError as error:
            raise MethodFailed(first_line(error.cause or error)) from error
        except ActorUnavailableError as error:
            raise ActorSilent("does not answer") from error
        except ActorDiedError as error:
            if NOT_INSTALLED in str(error):
                raise MethodFailed(f"tsctl is not installed there: {detail(error)}") from error
            raise ActorLost(f"died: {detail(error)}") from error
        except RayError as error:
            raise ActorLost(f"was lost: {first_line(error)}") from error

    def send(self, method: str, *arguments: Any) -> None:
        """Call a method, and pass over its result."""
        getattr(self._handle, method).remote(*arguments)

    def kill(self) -> None:
        """End the actor now. Waits for the head, which may be gone: run it in a thread."""
        with contextlib.suppress(Exception):  # it has ended, or the head is gone
            ray.kill(self._handle)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the error's name."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def detail(error: BaseException) -> str:
    """Return Ray's reason: behind the facts about the actor, each in a line of its own, and before its advice."""
    lines = [line.strip() for line in str(error).splitlines() if line and not line.startswith("\t")]
    return " ".join(lines[1:] or lines).partition(" Some common causes")[0][:MOST_DETAIL]


LOOK_EVERY = 2.0  # seconds between two looks at nodes that are avoided
RECONNECT = 1.0  # seconds between two attempts to connect
CALLS = 64  # at the same time, of one actor: two batches, the news, and what is told
STRATEGIES = {"SPREAD": "SPREAD", "PACK": "DEFAULT"}

_log = logging.getLogger("bridge")


def nodes_now() -> list[RayNode]:
    """Return the nodes that the head knows. Blocks."""
    return [
        RayNode(node["NodeID"], f"{node['NodeManagerHostname']}/{node['NodeID'][:8]}", node["Alive"], node["Resources"])
        for node in ray.nodes()
    ]


class Cluster:
    """One connection, which is made when the first worker needs it.

    Attributes:
        avoided: nodes that did not answer, id → name.
    """

    def __init__(self, address: str) -> None:
        self.avoided: dict[str, str] = {}
        self._address = address
        self._connected = False
        self._connecting = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self._digests: dict[Path, str] = {}
        self._pieces: dict[str, asyncio.Task[list[Any]]] = {}

    async def connect(self, waits: Callable[[str], None]) -> None:
        """Connect, once; try until that succeeds.

        Args:
            waits: called with the reason of each failed attempt.
        """
        async with self._connecting:
            while not self._connected:
                try:
                    await asyncio.to_thread(ray.init, self._address, log_to_driver=False, logging_level=logging.ERROR)
                    self._connected = True
                except Exception as error:  # noqa: BLE001 - Ray raises what its parts raise
                    waits(f"no connection to Ray at {self._address}: {first_line(error)}")
                    await asyncio.sleep(RECONNECT)

    def make(self, name: str, options: ActorOptions) -> RayActor:
        """Return a new actor, which Ray may not have placed yet.

        Args:
            name: in Ray's listings; unique among the actors of this connection.

        Raises:
            OptionsRefused: Ray does not accept the options.
        """
        labels = selector(options, list(self.avoided))
        try:
            actor = ray.remote(WorkerActor).options(
                max_restarts=0, max_task_retries=0, max_concurrency=CALLS,
                num_cpus=options.num_cpus, num_gpus=options.num_gpus, resources=options.resources,
                scheduling_strategy=STRATEGIES[options.placement],
                **({"label_selector": labels} if labels else {}),
                name=name,
            )  # fmt: skip
            return RayActor(actor.remote())
        except (ValueError, TypeError) as error:
            raise OptionsRefused(first_line(error)) from error

    async def why_pending(self, options: ActorOptions) -> str:
        """Return why an actor with these options has no node yet."""

        def look() -> str:
            return why_pending(options, nodes_now(), ray.available_resources(), list(self.avoided))

        try:
            return await asyncio.to_thread(look)
        except Exception as error:  # noqa: BLE001 - the head may be gone
            return f"the head does not answer: {first_line(error)}"

    async def digest_of(self, directory: Path) -> str:
        """Return the digest of a model's directory; the same one until files are found to have changed."""
        if directory not in self._digests:
            self._digests[directory] = await asyncio.to_thread(digest_of, directory)
        return self._digests[directory]

    async def pieces_of(self, digest: str, directory: Path) -> list[Any]:
        """Return references to a model's pieces. Nodes that ask at the same time share them.

        Raises:
            OSError: a file cannot be read, or the files have another digest now: the next attempt takes it anew.
        """

        def put() -> list[Any]:
            return [ray.put(piece) for piece in pieces_of(directory, digest)]

        if digest not in self._pieces:
            self._pieces[digest] = task = asyncio.create_task(asyncio.to_thread(put))
            task.add_done_callback(lambda done: self._pieces.pop(digest, None))
        try:
            return await asyncio.shield(self._pieces[digest])
        except FilesChanged:
            self._digests.pop(directory, None)
            raise

    def avoid(self, node_id: str, name: str) -> None:
        """Place no worker on a node that did not answer, until it is dead or answers."""
        if node_id not in self.avoided:
            _log.warning("node %s does not answer, and gets no worker until it does", name)
        self.avoided[node_id] = name
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        probes: dict[str, asyncio.Task[bool]] = {}
        while self.avoided:
            await asyncio.sleep(LOOK_EVERY)
            with contextlib.suppress(Exception):  # the head may be gone
                alive = {node.id for node in await asyncio.to_thread(nodes_now) if node.alive}
                for node_id, name in list(self.avoided.items()):
                    probe = probes.get(node_id)
                    if node_id not in alive:
                        _log.warning("node %s is dead, says the head", name)
                    elif probe is not None and probe.done() and probe.result():
                        _log.warning("node %s answers again", name)
                    else:
                        if probe is None or probe.done():
                            probes[node_id] = asyncio.create_task(_answers(node_id))
                        continue
                    del self.avoided[node_id]


async def _answers(node_id: str) -> bool:
    """Return whether a node runs a function."""
    strategy = NodeAffinitySchedulingStrategy(node_id, soft=False)
    probe = ray.remote(_probe).options(num_cpus=0, max_retries=0, scheduling_strategy=strategy)
    try:
        await probe.remote()
    except Exception:  # noqa: BLE001 - whatever Ray says about it
        return False
    return True


def _probe() -> None:
    """Do nothing, on a node."""
