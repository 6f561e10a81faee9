"""The daemon's orders to a template, and the template's reports: one message a packet.

    daemon → template   Fork or Grow, each with three descriptors: the new process's socket, stdout, stderr
    template → daemon   Ready or Unfit, once; then for each order Forked or OrderRefused

The socket is a SOCK_SEQPACKET, which keeps message boundaries. The new process's socket is a stream of frames for a
worker (wire.py), and a SOCK_SEQPACKET for a template.
"""

import msgspec

from tsctl.handlers import wire
from tsctl.handlers.texts.encodable import packed

LARGEST = 128 * 1024  # bytes of a packet; by default the kernel takes about 200 KiB (socket(7), wmem_default)

MARK = "TSWORKER_OF"  # in the environment of workers and templates: the daemon's pid

# The variables that libraries read when loaded: how many threads one operation may use.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Fork(msgspec.Struct, array_like=True, tag=1):
    """Fork a worker: `threads` for its environment, `directory` is its working directory."""

    threads: int
    directory: str


class Grow(msgspec.Struct, array_like=True, tag=2):
    """Fork a template that also imports `modules`, and loads a model if `load` is set."""

    modules: list[str]
    load: wire.Load | None = None


class Ready(msgspec.Struct, array_like=True, tag=1):
    """The template accepts orders; `seconds` is the time that the preparation took."""

    seconds: float


class Unfit(msgspec.Struct, array_like=True, tag=2):
    """The template cannot be forked, and ends."""

    reason: str


class Forked(msgspec.Struct, array_like=True, tag=3):
    """The pid of the new process; its parent is the daemon."""

    pid: int


class OrderRefused(msgspec.Struct, array_like=True, tag=4):
    reason: str


Order = Fork | Grow
Report = Ready | Unfit | Forked | OrderRefused

encode = packed
decode_order = msgspec.msgpack.Decoder(Order).decode
decode_report = msgspec.msgpack.Decoder(Report).decode
