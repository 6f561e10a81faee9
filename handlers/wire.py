"""Frames between the daemon and a worker.

    ┌──────────────┬───────────────────────┐
    │ length: u32  │ message: msgpack       │   one frame
    └──────────────┴───────────────────────┘

    daemon → worker   Share, if there is an arena; Load, then Predict … ; Threads, BatchSize at any time; Credit for a
                      batch that has sent Chunks; end of stream: leave
    worker → daemon   Hello, then Loaded or LoadFailed, then for each Predict any number of Chunks and one Done,
                      preceded by Started if the worker runs several batches at once; Cut if clients do not read;
                      GpuLost at any time, before it leaves
    rank 0 → rank n   what the daemon sends, and NextCall: a worker can be a group of processes (process/ranks)

A worker whose model runs row by row (`Load.mode`) takes batches of one row, up to its capacity at the same time, and
answers them in any order: Predict starts the row, a Chunk is a piece of its answer, Done its end; a Round holds pieces
and ends of many rows. Cancel asks for an early end; the Done comes all the same: each row ends exactly once.
A handler can write frames of its own: the daemon checks every message against the constraints below (msgspec, in C: 40
ns of 750 ns for a `Done`) and rejects any violation. No sockets and no asyncio here: bytes in, messages out.
"""

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tsctl.handlers.tensor_heads import Head
from tsctl.handlers.texts.encodable import UNENCODABLE, encodable

if TYPE_CHECKING:
    Payload = bytes | memoryview
else:
    Payload = memoryview  # the type after decoding: a view into the frame; encoding takes bytes too

LENGTH = struct.Struct("<I")
MAX_FRAME = 2**32 - 1
# The upper bound of each bucket of a handler's histogram, in the metric's own unit.
BOUNDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0,
)  # fmt: skip
STAGE_TIME = "tsctl_stage_seconds"  # a histogram that built-in handlers report, with one label: the stage
STAGES = ("preprocess", "inference", "postprocess")
MOST_SERIES = 1000  # in one frame; more means a label that never repeats
MOST_LABELS = 100  # of one series
LONGEST_LABEL = 1000  # characters of a label, of its name, and of a metric's name and unit
MOST_FAILURES = 5  # of one batch
MOST_KEPT = 100_000  # values in the arena that one worker's handler uses after their batches
LONGEST_TEXT = 64 * 1024  # characters of a text for people, and of a response header
MOST_HEADERS = 1000  # of one response
EXIT_LOAD_FAILED = 3  # exit code of a worker that cannot load its model: a restart will not help
EXIT_DISCONNECTED = 76  # exit code of a worker whose handler closed its connection (EX_PROTOCOL of sysexits.h)
EXIT_MEMBER_LOST = 77  # exit code of a worker that is a group of processes, after MemberLost
EXIT_GPU_LOST = 78  # exit code of a worker whose GPU context is broken, after GpuLost

BrokenMessage = msgspec.DecodeError  # raised by the decoders for bytes that are not a valid message

Label = Annotated[str, Meta(max_length=LONGEST_LABEL)]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Kind = Literal["counter", "gauge", "histogram"]
Mode = Literal["batch", "continuous", "async"]
InputKind = Literal["text", "json", "image", "audio", "array", "tensor", "bytes"]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Seconds = Annotated[float, Meta(ge=0.0, le=1e9)]  # neither NaN nor infinite
Status = Annotated[int, Meta(ge=200, le=599)]
INSTANCES = "/v1"  # the parameter that is a whole body of KServe's first protocol, for a typed handler

Headers = Annotated[list[tuple[Text, Text]], Meta(max_length=MOST_HEADERS)]


class FrameTooLarge(ValueError):
    """The message does not fit the length field."""


class Ranks(msgspec.Struct, array_like=True):
    """The process is one of `count` that run the model together, its `rank`; the daemon's worker is rank 0.

    `each`: each rank runs every batch; else rank 0 alone does, and the handler's own messages reach the others.
    """

    count: int
    rank: int = 0
    each: bool = True


class Load(msgspec.Struct, array_like=True, tag=1):
    """Load this model. Paths are absolute; `gpu_id` is None on the CPU.

    `cpus`: the processors that the worker may use; empty for all of the daemon's.
    `group`: the directory of the cgroup that the worker enters before loading; empty for none.
    `isolate`: whether rows run alone after the handler raised for their batch; None if not configured.
    `in_place`: the directory is its author's own, not an unpacked archive: the worker leaves no bytecode there.
    `metrics`: the metrics that the operator has declared, each as its type, name, unit and names of dimensions.
    `mode`: `batch`, whole batches; `continuous`, rows that join and leave between the calls of the handler; `async`,
        rows that run concurrently on an event loop.
    `ranks`: None for a worker that is one process.
    `gpus`: the GPUs that the process sees, by their names for CUDA; `gpu_id` counts them. Empty to change nothing.
    `device_type`: `auto` allows the CPU where torch cannot use the GPU.
    `quiet`: a refused optimisation is told in LoadFailed alone, and not printed.
    """

    model_name: str
    model_version: str
    model_dir: str
    handler: str
    manifest: dict[str, Any]
    batch_size: int
    threads: int
    gpu_id: int | None = None
    optimize: list[str] | None = None
    isolate: bool | None = None
    cpus: list[int] = []
    group: str = ""
    in_place: bool = False
    metrics: list[tuple[Kind, str, str, list[str]]] = []
    mode: Mode = "batch"
    ranks: Ranks | None = None
    gpus: list[Label] = []
    device_type: str | None = None
    quiet: bool = False


class Share(msgspec.Struct, array_like=True, tag=5):
    """The first frame, sent with a descriptor of the arena (SCM_RIGHTS); `size` is the readable length in bytes."""

    size: int


class Row(msgspec.Struct, array_like=True):
    """One request of a batch.

    `params` are (name, content type, value); the values are views into the frame or into the arena. With `infer` they
    are the elements of its inputs, in their order, or what else it says.
    """

    id: str
    headers: list[tuple[str, str]]
    params: list[tuple[str, str, Payload]]
    infer: Head | None = None


class Stored(msgspec.Struct, array_like=True):
    """The location in the arena of a value that is not in the frame; `offset` and `length` are bytes."""

    row: int
    param: int
    offset: int
    length: int


class Predict(msgspec.Struct, array_like=True, tag=2):
    """Run a batch. Values listed in `stored` are empty in the rows."""

    batch: int
    rows: list[Row]
    stored: list[Stored] = []


class Threads(msgspec.Struct, array_like=True, tag=3):
    """Use this many intra-op threads from the next batch on."""

    count: int


class BatchSize(msgspec.Struct, array_like=True, tag=4):
    """The maximum batch size, in rows, from the next batch on."""

    most: int


class Credit(msgspec.Struct, array_like=True, tag=6):
    """The client of a row has read `count` bytes of its pieces (credit.py); 0: no further pieces are wanted."""

    batch: int
    row: int
    count: int


class Cancel(msgspec.Struct, array_like=True, tag=7):
    """The answer to this batch, which has one row, is not wanted any more; its Done is still expected."""

    batch: int


class NextCall(msgspec.Struct, array_like=True, tag=8):
    """From rank 0 to the others: call the handler for the active rows, without those that have left (running.py)."""

    number: int
    left: list[int]


class Hello(msgspec.Struct, array_like=True, tag=1):
    pid: int


class Measurement(msgspec.Struct, array_like=True):
    """One series' measurements since the last frame.

    Attributes:
        kind: `counter`, `gauge` or `histogram`.
        value: a counter's increase, a gauge's last value, a histogram's sum.
        buckets: a histogram's count per bucket of `BOUNDS`, not cumulative; else empty.
    """

    kind: Kind
    name: Label
    unit: Label
    labels: Annotated[tuple[tuple[Label, Label], ...], Meta(max_length=MOST_LABELS)]
    value: float
    buckets: Annotated[list[Count], Meta(max_length=len(BOUNDS) + 1)] = []


Measured = Annotated[list[Measurement], Meta(max_length=MOST_SERIES)]


class Optimized(msgspec.Struct, array_like=True):
    """The outcome of an optimisation.

    Attributes:
        drift: how far the output moved.
        reason: why it was not applied, or how much of the model it reached.
        idle: there was nothing to do.
        agreement: the fraction of best classes that stay the same.
        wanted: the least agreement with which it is kept.
        inputs: how many inputs were compared.
        known: found by an earlier load.
    """

    name: Label
    applied: bool
    drift: float | None
    seconds: Seconds
    reason: Text = ""
    idle: bool = False
    agreement: float | None = None
    known: bool = False
    wanted: float | None = None
    inputs: Count = 0


class Input(msgspec.Struct, array_like=True):
    """One input that a typed handler declares: one part of the body, named after the argument.

    Attributes:
        annotation: the type as written, for people: `list[str]`.
        datatype, shape: of a tensor that the model's file tells, of one row: as the Open Inference Protocol names it,
            and -1 for any length; empty for others.
    """

    name: Label
    kind: InputKind
    annotation: Text = ""
    datatype: Label = ""
    shape: Annotated[list[int], Meta(max_length=MOST_LABELS)] = []


class Declared(msgspec.Struct, array_like=True):
    """The inputs and the answer of a typed or built-in handler.

    Attributes:
        batches: the function takes lists: one call for a whole batch; else one call a row.
        batch_size: the most rows in a batch that the handler wants; 0 if the handler names none.
        streams: the function is a generator: its answer comes in pieces.
        output: the return annotation as written, for people.
        built_in: the handler is a built-in one, or a subclass that reads requests as that does: requests other than
            tensors are read as TorchServe reads them.
        waits: the function is a coroutine: the calls of several rows are under way at the same time.
        outputs: tensors of one row that the model's file tells, as it tells `inputs`; empty for others.
    """

    inputs: Annotated[list[Input], Meta(max_length=MOST_LABELS)]
    batches: bool
    batch_size: Count = 0
    streams: bool = False
    output: Text = ""
    built_in: bool = False
    waits: bool = False
    outputs: Annotated[list[Input], Meta(max_length=MOST_LABELS)] = []


Held = Annotated[list[Count], Meta(max_length=MOST_LABELS)]


class Loaded(msgspec.Struct, array_like=True, tag=2):
    """The model is ready. `own_handle`: the handler defines its own `handle`, which may have side effects.

    Attributes:
        declared: the inputs of a typed or built-in handler; None for any other.
        notes: sentences for the model's author, for example why the call without data was passed over.
        gpu_memory: as `held` of `GpuMemory`; empty on the CPU.
        most_rows: that the model takes at a time; 0 for any number.
        threads: of one operation, that the handler has set; 0 if it keeps its share.
    """

    seconds: Seconds
    own_handle: bool
    measured: Measured = []
    optimized: Annotated[list[Optimized], Meta(max_length=MOST_LABELS)] = []
    declared: Declared | None = None
    notes: Annotated[list[Text], Meta(max_length=MOST_LABELS)] = []
    gpu_memory: Held = []
    most_rows: Count = 0
    threads: Count = 0


class LoadFailed(msgspec.Struct, array_like=True, tag=3):
    """The model cannot be loaded. `traceback` is the handler's, without our frames.

    `passing`: another worker may load the model: this one has lost its GPU.
    `refused`: why optimisations that were asked for cannot be done, if that is the reason; else empty.
    """

    error: Text
    traceback: Text
    out_of_memory: bool = False
    passing: bool = False
    refused: Text = ""


class Started(msgspec.Struct, array_like=True, tag=6):
    """A batch has started; another may still be running."""

    batch: int


class Answer(msgspec.Struct, array_like=True):
    """The response to one row. `error` is TorchServe's error type; the body is then its message."""

    status: Status
    body: bytes
    phrase: Text = ""
    headers: Headers = []
    error: Label = ""


class Chunk(msgspec.Struct, array_like=True, tag=5):
    """Pieces of incomplete responses: (row, piece). More pieces follow, the last one in `Done`.

    Each Chunk restarts the response timeout. An empty one says that the batch continues, with one row at a time.
    """

    batch: int
    pieces: list[tuple[int, Answer]]


class Cut(msgspec.Struct, array_like=True, tag=7):
    """The clients of these rows do not read the stream: the worker drops the rest of their responses."""

    batch: int
    rows: list[int]


class Isolation(msgspec.Struct, array_like=True):
    """The handler raised for a batch and its rows ran alone, or in halves where memory did not suffice: how many
    failed, and for how many seconds they ran."""

    failed: Count
    seconds: Seconds


class HandlerFailure(msgspec.Struct, array_like=True):
    """An exception of the handler: the rows whose answers report it, and its traceback, without our frames."""

    rows: list[int]
    traceback: Text


class Done(msgspec.Struct, array_like=True, tag=4):
    """One batch is finished. `answers` are in the order of the rows.

    `seconds` is measured in the worker and includes isolation. `failures` are the first exceptions of the batch.
    `kept`: the offsets in the arena of all values, of this batch and earlier ones, whose memory the handler still uses.
    `too_large`: the fewest rows for which memory did not suffice together, and would alone; 0 for none.
    """

    batch: int
    answers: list[Answer]
    seconds: Seconds
    measured: Measured = []
    isolation: Isolation | None = None
    failures: Annotated[list[HandlerFailure], Meta(max_length=MOST_FAILURES)] = []
    kept: Annotated[list[Count], Meta(max_length=MOST_KEPT)] = []
    too_large: Count = 0


class Round(msgspec.Struct, array_like=True, tag=8):
    """One call of a handler for many rows: a piece of each that goes on, as (batch, piece), and the others' ends."""

    pieces: list[tuple[int, Answer]]
    ends: list[Done]
    rows: list[int] = []  # batches of `more`: pieces of answers that have begun, so status and headers were sent
    more: list[bytes] = []


class MemberLost(msgspec.Struct, array_like=True, tag=9):
    """The worker ends because of another process of its group; `killed`: a SIGKILL ended that one."""

    reason: Text
    killed: bool


class GpuLost(msgspec.Struct, array_like=True, tag=11):
    """The worker ends: its GPU context is broken, and only a new process can use the GPU.

    What it has in flight is not answered, and ends as that of any worker that dies.
    """

    reason: Text


class GpuMemory(msgspec.Struct, array_like=True, tag=10):
    """The bytes that the worker holds on each GPU that it sees have changed; containers hide them from NVML."""

    held: Held


Frame = bytes | bytearray | memoryview
ToWorker = Share | Load | Predict | Threads | BatchSize | Credit | Cancel | NextCall
ToDaemon = Hello | Loaded | LoadFailed | Started | Chunk | Done | Cut | Round | MemberLost | GpuLost | GpuMemory

_encoder = msgspec.msgpack.Encoder()
_decode_for_worker: Callable[[Frame], ToWorker] = msgspec.msgpack.Decoder(ToWorker).decode
_decode_for_daemon: Callable[[Frame], ToDaemon] = msgspec.msgpack.Decoder(ToDaemon).decode
_NO_MESSAGE = (UnicodeDecodeError, RecursionError)  # raised by msgspec for text that is not UTF-8, and for deep nesting


def decode_for_worker(frame: Frame) -> ToWorker:
    """Decode a message for a worker; raise BrokenMessage for anything else."""
    try:
        return _decode_for_worker(frame)
    except _NO_MESSAGE as error:
        raise BrokenMessage(str(error)) from None


def decode_for_daemon(frame: Frame) -> ToDaemon:
    """Decode a message for the daemon; raise BrokenMessage for anything else."""
    try:
        return _decode_for_daemon(frame)
    except _NO_MESSAGE as error:
        raise BrokenMessage(str(error)) from None


def encode(message: ToWorker | ToDaemon) -> bytearray:
    """Encode a message as one frame, whatever texts are in it; raise FrameTooLarge for one of 4 GiB or more."""
    frame = bytearray(LENGTH.size)
    try:
        _encoder.encode_into(message, frame, LENGTH.size)
    except UNENCODABLE:
        frame = bytearray(LENGTH.size)
        _encoder.encode_into(encodable(message), frame, LENGTH.size)
    length = len(frame) - LENGTH.size
    if length > MAX_FRAME:
        raise FrameTooLarge(f"a message of {length} bytes does not fit a frame")
    LENGTH.pack_into(frame, 0, length)
    return frame
