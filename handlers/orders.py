"""What the daemon orders from a template, and what the template says: one message a packet.

    daemon → template   Fork or Grow, each with two descriptors: the new process's socket, and its output
    template → daemon   Ready or Unfit, once; then for each order Forked or Refused

The socket is a SOCK_SEQPACKET, which keeps messages apart. The new process's socket is a stream of
frames for a worker (wire.py), and a SOCK_SEQPACKET for a template.
"""

import msgspec

from handlers import wire

LARGEST = 128 * 1024  # bytes of a packet; by default the kernel takes about 200 KiB (socket(7), wmem_default)

# What libraries read when they are loaded: how many threads one operation may use.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Fork(msgspec.Struct, array_like=True, tag=1):
    """Make a worker: `threads` are for its environment, `directory` is where it works."""

    threads: int
    directory: str


class Grow(msgspec.Struct, array_like=True, tag=2):
    """Make a template that has imported more `modules`, and loaded a model if there is a `load`."""

    modules: list[str]
    load: wire.Load | None = None


class Ready(msgspec.Struct, array_like=True, tag=1):
    """It takes orders; `seconds` were needed to get there."""

    seconds: float


class Unfit(msgspec.Struct, array_like=True, tag=2):
    """It cannot be forked, and ends."""

    reason: str


class Forked(msgspec.Struct, array_like=True, tag=3):
    """The new process; its parent is the daemon."""

    pid: int


class Refused(msgspec.Struct, array_like=True, tag=4):
    reason: str


Order = Fork | Grow
Report = Ready | Unfit | Forked | Refused

encode = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(Order).decode
decode_report = msgspec.msgpack.Decoder(Report).decode
