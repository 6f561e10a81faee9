"""A worker whose GPU context is broken ends, so that another one, with a context of its own, takes its place.

The errors are those that torch raises, and the look at the GPU is an argument: the real texts are of an H100 with
driver 580 and torch 2.11. Where there is a GPU, one test reads its own.
"""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.handlers.device import DEVICE
from tests.handlers.samples import row, write
from tests.handlers.test_worker import load_of
from tests.kit.null_gpu.cards import cards_or_skip
from tests.places import ROOT
from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader
from tsctl.handlers.process.connection import DaemonConnection
from tsctl.handlers.requests import gpu_context
from tsctl.handlers.requests.gpu_context import GpuContext, breakage
from tsctl.handlers.sdk.errors import PredictionException
from tsctl.handlers.worker import serve

ASSERT = """CUDA error: device-side assert triggered
Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/cuda-runtime-api/… for more information.
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
"""
ILLEGAL = "CUDA error: an illegal memory access was encountered\nCompile with `TORCH_USE_CUDA_DSA` to enable …"
ORDINAL = "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?"
OUT = "CUDA out of memory. Tried to allocate 400.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which …"


def of_driver(text: str, code: int) -> BaseException:
    """Return an error as torch raises it for the driver."""
    error = torch.AcceleratorError(text)
    error.error_code = code  # type: ignore[attr-defined]
    return error


def instead_of(cause: BaseException, error: BaseException) -> BaseException:
    """Return an error that a handler raised while it caught another one."""
    error.__context__ = cause
    return error


def untouched() -> BaseException | None:
    pytest.fail("the GPU is not asked")


WHY = "its GPU context is broken: device-side assert triggered (CUDA error 710)"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(of_driver(ASSERT, 710), WHY, id="an assert"),
        pytest.param(
            of_driver(ILLEGAL, 700),
            "its GPU context is broken: an illegal memory access was encountered (CUDA error 700)",
            id="an illegal address",
        ),
        pytest.param(instead_of(of_driver(ASSERT, 710), PredictionException("no", 500)), WHY, id="caught"),
        pytest.param(ValueError("shapes differ"), "", id="not of CUDA"),
        pytest.param(PredictionException("no", 710), "", id="a status is no code"),
        pytest.param(torch.OutOfMemoryError(OUT), "", id="out of memory"),
        pytest.param(RuntimeError(OUT), "", id="out of memory, without its class"),
        pytest.param(MemoryError("cuda"), "", id="out of the machine's memory"),
    ],
)
def test_where_the_error_itself_decides_the_gpu_is_not_asked(error: BaseException, expected: str) -> None:
    assert breakage(error, untouched) == expected


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(of_driver(ORDINAL, 101), id="no such GPU"),
        pytest.param(of_driver("CUDA error: uncorrectable ECC error encountered", 214), id="an error of the memory"),
        pytest.param(torch.AcceleratorError("CUDA error: unknown error"), id="without its code"),
        pytest.param(RuntimeError(ASSERT), id="of an older torch"),
        pytest.param(RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), id="of cuDNN"),
        pytest.param(RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered"), id="of Triton"),
        pytest.param(instead_of(RuntimeError(ILLEGAL), KeyError("x")), id="caught"),
    ],
)
def test_of_any_other_error_of_cuda_the_gpu_says_whether_it_can_still_be_used(error: BaseException) -> None:
    assert breakage(error, lambda: None) == ""
    assert breakage(error, lambda: of_driver(ASSERT, 710)) == WHY
    assert breakage(error, lambda: RuntimeError()) == "its GPU context is broken: RuntimeError"


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        pytest.param(None, None, id="it can be used"),
        pytest.param(of_driver(ASSERT, 710), "710", id="it is broken"),
        pytest.param(
            of_driver("CUDA error: operation not permitted when stream is capturing", 900),
            None,
            id="another lane captures",
        ),
    ],
)
def test_all_gpus_in_use_are_waited_for(
    raised: BaseException | None, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[int] = []

    def synchronize(device: int) -> None:
        waited.append(device)
        if raised is not None:
            raise raised

    cuda = torch.cuda
    monkeypatch.setattr(cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch._C, "_cuda_hasPrimaryContext", bool, raising=False)  # none on the first
    monkeypatch.setattr(cuda, "synchronize", synchronize)

    error = gpu_context.touch_gpus()

    assert (error if expected is None else str(gpu_context.code_of(error or KeyError()))) == expected
    assert waited == ([1, 2] if raised is None else [1])


def test_with_a_torch_that_does_not_tell_its_contexts_gpus_are_those_where_it_has_held_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.delattr(torch._C, "_cuda_hasPrimaryContext", raising=False)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda gpu: gpu << 20)
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)

    assert gpu_context.touch_gpus() is None
    assert waited == [1, 2]


def test_an_exception_whose_class_raises_breaks_nothing_nor_does_anything_without_a_gpu_in_use() -> None:
    if not torch.cuda.is_initialized():
        assert gpu_context.touch_gpus() is None

    class Bad(RuntimeError):
        @property
        def __cause__(self) -> None:  # type: ignore[override]
            raise ValueError

    assert breakage(Bad("CUDA error"), untouched) == ""


# In a process of its own: an index out of range breaks its context. Null cards have no assertions, but the rest.
FULL = """
import torch
from tsctl.handlers.requests.gpu_context import breakage
from tsctl.handlers.requests.out_of_memory import is_out_of_memory, make_room

def error_of(call):
    try:
        call()
    except Exception as error:
        return error

def take(percent):
    total = torch.cuda.get_device_properties(0).total_memory
    return torch.empty(total // 100 * percent, dtype=torch.uint8, device="cuda:0")

held = take(60)
full = error_of(lambda: take(60))
assert is_out_of_memory(full) and not breakage(full), full
make_room()
assert take(20).is_cuda and held.is_cuda
other = error_of(lambda: torch.ones(1, device="cuda:99"))
assert other and not breakage(other), other
"""
REAL = f"""{FULL}
table = torch.nn.Embedding(10, 4).to("cuda:0")
broken = error_of(lambda: table(torch.tensor([99], device="cuda:0")).sum().item())
assert breakage(broken), broken
assert breakage(RuntimeError(str(broken))), "without the error's code, too"
"""


@pytest.mark.heavy
def test_a_card_that_is_full_or_not_there_breaks_nothing_and_has_room_again(tmp_path: Path) -> None:
    cards_or_skip(tmp_path).run(FULL)


@pytest.mark.skipif(DEVICE.type == "cpu", reason="needs a GPU: `make gpu`")
def test_what_a_gpu_raises_itself_breaks_the_context_or_does_not() -> None:
    done = subprocess.run([sys.executable, "-c", REAL], cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr


def test_the_process_is_left_once() -> None:
    left: list[str] = []
    gpu = GpuContext(lambda: None)
    gpu.leave = left.append

    gpu.check(RuntimeError(ASSERT))
    assert left == []
    gpu.check(of_driver(ASSERT, 710))
    gpu.check(of_driver(ILLEGAL, 700))

    assert left == [gpu.broken] == [WHY]


RAISES = """
    import torch
    from pathlib import Path
    calls = Path(__file__).with_name("calls")
    def fail(rows):
        with calls.open("a") as file:
            file.write(f"{rows}\\n")
        error = torch.AcceleratorError("CUDA error: device-side assert triggered")
        error.error_code = 710
        raise error
"""
HANDLERS = {
    "a stage of ours": """
    from ts.torch_handler.base_handler import BaseHandler
    class Mine(BaseHandler):
        def initialize(self, context):
            self.context, self.model = context, torch.nn.Identity()
        def preprocess(self, data):
            return data
        def inference(self, data):
            fail(len(data))
    """,
    "the user's handle": """
    def handle(data, context):
        if data:
            fail(len(data))
    """,
    "an item": """
    def handle(data, context):
        try:
            fail(len(data)) if data else None
        except RuntimeError as error:
            return [error] * len(data)
    """,
    "typed, in batches": """
    def predict(numbers: list[float]) -> list[float]:
        fail(len(numbers))
    """,
    "typed, row by row": """
    def predict(number: float) -> float:
        fail(1)
    """,
    "the encoding": """
    class Late:
        def __len__(self):
            return 1
        def keys(self):
            fail(1)
    class Answers(dict):
        def items(self):
            fail(1)
    def handle(data, context):
        return [Answers(a=1)] * len(data)
    """,
}


def leave(model_dir: Path, load: wire.Load, source: str, *batches: wire.Predict) -> tuple[list[int], list[type]]:
    """Run a worker on this thread; return the exit codes with which it would end, and the kinds of what it says."""
    write(model_dir / "mine.py", RAISES + source)
    codes: list[int] = []
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"".join([wire.encode(load), *map(wire.encode, batches)]))

        def end(code: int, text: str) -> None:
            codes.append(code)
            ours.shutdown(socket.SHUT_WR)

        returned = serve(DaemonConnection(theirs), end=end)
        theirs.shutdown(socket.SHUT_WR)
        said = b"".join(iter(lambda: ours.recv(65536), b""))
    kinds = [type(wire.decode_for_daemon(frame)) for frame in FrameReader().feed(said)]
    return codes or [returned], kinds


def before_the_end(kinds: list[type]) -> list[type]:
    """Return what was said before the process would have ended."""
    return kinds[: kinds.index(wire.GpuLost) + 1]


def numbers(batch: int, count: int) -> wire.Predict:
    return wire.Predict(batch, [row(b"1.0", "application/json", request_id=f"r{each}") for each in range(count)])


def calls(model_dir: Path) -> list[int]:
    return [int(line) for line in (model_dir / "calls").read_text().split()]


STAGE, HANDLE = HANDLERS["a stage of ours"], HANDLERS["the user's handle"]
ASYNC = "\n    async def handle(data, context):\n        fail(len(data))\n"


@pytest.mark.parametrize(
    ("source", "mode", "pipeline", "batch"),
    [
        *(pytest.param(source, "batch", False, numbers(7, 4), id=name) for name, source in HANDLERS.items()),
        pytest.param(STAGE, "batch", True, numbers(7, 2), id="a lane of a pipeline"),
        pytest.param(HANDLE, "continuous", False, numbers(7, 1), id="rows that join and leave"),
        pytest.param(ASYNC, "async", False, numbers(7, 1), id="rows as tasks"),
    ],
)
def test_a_batch_that_breaks_the_context_ends_its_worker_without_an_answer(
    model_dir: Path, source: str, mode: wire.Mode, pipeline: bool, batch: wire.Predict
) -> None:
    load = load_of(model_dir)
    load.isolate, load.mode = mode == "batch" and not pipeline, mode
    if pipeline:
        (model_dir / "config.yaml").write_text("pipeline: true\n")
        load.manifest["model"]["configFile"] = "config.yaml"

    codes, kinds = leave(model_dir, load, source, batch)

    assert codes == [wire.EXIT_GPU_LOST]
    started = [wire.Started] * pipeline
    assert before_the_end(kinds) == [wire.Hello, wire.Loaded, *started, wire.GpuLost], "no Done: others run it"
    if source == STAGE:
        assert calls(model_dir) == [len(batch.rows)], "no row runs again where each would fail alike"


def test_a_load_that_breaks_the_context_may_be_tried_again_by_another_worker(model_dir: Path) -> None:
    source = """
    class Mine:
        def initialize(self, context):
            fail(0)
        def handle(self, data, context): ...
    """

    codes, kinds = leave(model_dir, load_of(model_dir), source)

    assert codes == [wire.EXIT_GPU_LOST]
    assert kinds == [wire.Hello, wire.GpuLost, wire.LoadFailed]


def test_what_a_load_has_begun_and_broken_later_is_found_before_the_worker_is_ready(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsctl.handlers.worker.touch_gpus", lambda: of_driver(ASSERT, 710))

    codes, kinds = leave(model_dir, load_of(model_dir), HANDLERS["typed, row by row"])

    assert codes == [wire.EXIT_GPU_LOST]
    assert kinds == [wire.Hello, wire.GpuLost, wire.LoadFailed]
