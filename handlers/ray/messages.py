"""The daemon's orders to the bridge, and the bridge's reports: one message a packet.

    daemon → bridge   Connect, first; StartRemote for each worker, with three descriptors: its frames, stdout, stderr;
                      KillRemote
    bridge → daemon   for each StartRemote: Waits at any time, Placed at most once, RemoteEnded exactly once, last

The descriptors are used as by a worker's process: the daemon does not see that another process is between.
"""

from typing import Literal

import msgspec

from tsctl.handlers.orders import LARGEST as LARGEST
from tsctl.handlers.texts.encodable import packed

Placement = Literal["SPREAD", "PACK"]


class ActorOptions(msgspec.Struct, array_like=True, frozen=True):
    """The resources that a worker takes of its node, and the nodes that it may be on.

    Attributes:
        num_cpus, num_gpus, resources: reserved for the worker, in Ray's units; they do not limit it.
        placement: SPREAD over nodes; PACK fills nodes one after the other, up to half of each first, as Ray does.
        labels: that a node must have, as Ray's label selectors: `{"disk": "ssd"}`, `{"zone": "!in(a,b)"}`.
    """

    num_cpus: float = 1.0
    num_gpus: float = 0.0
    resources: dict[str, float] = {}
    placement: Placement = "SPREAD"
    labels: dict[str, str] = {}


class Connect(msgspec.Struct, array_like=True, tag=1):
    """The cluster: `HOST:PORT` of its head, or `auto`."""

    address: str


class StartRemote(msgspec.Struct, array_like=True, tag=2):
    """Start a worker.

    Attributes:
        number: names the worker in later messages.
        name: of the model, for people and for Ray's dashboard.
        model_dir: the model's files on the daemon's machine.
        threads: intra-op threads.
        variables: environment variables of the worker, beside those of the node.
    """

    number: int
    name: str
    model_dir: str
    options: ActorOptions
    threads: int
    variables: dict[str, str]


class KillRemote(msgspec.Struct, array_like=True, tag=3):
    """End a worker now."""

    number: int


class Waits(msgspec.Struct, array_like=True, tag=1):
    """The worker has no process yet, for this reason; empty if the reason is gone."""

    number: int
    reason: str


class Placed(msgspec.Struct, array_like=True, tag=2):
    """The worker's process has started, on this node."""

    number: int
    node: str
    pid: int


class RemoteEnded(msgspec.Struct, array_like=True, tag=3):
    """The worker has ended, and its descriptors are closed.

    Attributes:
        code: the process's return code, as `subprocess` counts.
        lost: why the worker cannot be reached; empty if its process has ended. It may have run its batches.
    """

    number: int
    code: int
    lost: str = ""


BridgeOrder = Connect | StartRemote | KillRemote
BridgeReport = Waits | Placed | RemoteEnded

encode = packed
decode_order = msgspec.msgpack.Decoder(BridgeOrder).decode
decode_report = msgspec.msgpack.Decoder(BridgeReport).decode
