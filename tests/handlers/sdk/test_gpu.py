"""No worker that was given a GPU runs on the CPU in silence: on a machine where torch finds none."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.handlers.samples import write
from tsctl.handlers import wire
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.gpu import device_of, remedy_of, unusable, unusable_apart

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
FALLS_BACK = """
    import torch

    class Handler:
        def initialize(self, context):
            gpu = context.system_properties["gpu_id"]
            usable = gpu is not None and torch.cuda.is_available()
            self.device = f"cuda:{gpu}" if usable else "cpu"

        def handle(self, data, context):
            return [f"{self.device} {context.system_properties['gpu_id']}" for _ in data]
"""
TYPED = "def predict(words: list[str]) -> list[str]:\n    return words\n"
STEPPED = "async def handle(data, context):\n    return data\n"


class Raises:
    @property
    def device(self) -> str:
        raise RuntimeError("no device yet")


@pytest.mark.parametrize(("handler", "device"), [
    pytest.param(SimpleNamespace(device="cuda:1"), "cuda:1", id="a text"),
    pytest.param(SimpleNamespace(device=torch.device("cuda", 1)), "cuda:1", id="torch's own"),
    pytest.param(SimpleNamespace(device=None), "cpu", id="none, as in TorchServe before the load"),
    pytest.param(SimpleNamespace(device="microphone"), "cpu", id="another kind of device"),
    pytest.param(SimpleNamespace(), "cpu", id="no attribute"),
    pytest.param(Raises(), "cpu", id="a property that raises"),
])  # fmt: skip
def test_the_device_of_a_handler_is_the_one_that_its_attribute_names(handler: object, device: str) -> None:
    assert device_of(handler) == torch.device(device)


def load(directory: Path, mode: wire.Mode = "batch", gpu_id: int | None = 0, device_type: str | None = None) -> Runtime:
    from tsctl.handlers.worker import runtime_class

    message = wire.Load("m", "1.0", str(directory), "mine.py", {}, 1, 1, gpu_id, mode=mode, device_type=device_type)
    return runtime_class(mode).load(message)


def test_a_built_in_handler_with_a_gpu_that_torch_cannot_use_fails_with_torchs_reason(model_dir: Path) -> None:
    write(model_dir / "net.py", "import torch\nclass Net(torch.nn.Module): ...\n")
    context = Context("m", str(model_dir), {"model": {"modelFile": "net.py"}}, batch_size=1, gpu=1)

    with pytest.raises(HandlerError, match=r"given GPU 1, but torch .* cannot use it: .*; .*deviceType: auto"):
        BaseHandler().initialize(context)


@pytest.mark.parametrize(
    ("source", "mode"),
    [
        pytest.param(FALLS_BACK, "batch", id="a class that chooses its device"),
        pytest.param(TYPED, "batch", id="a typed function"),
        pytest.param(STEPPED, "async", id="an asynchronous function"),
    ],
)
def test_a_handler_of_a_user_does_not_fall_back_in_silence(model_dir: Path, source: str, mode: wire.Mode) -> None:
    write(model_dir / "mine.py", source)

    with pytest.raises(HandlerError, match="given GPU 0, but torch"):
        load(model_dir, mode)


def test_with_the_device_type_auto_it_runs_on_the_cpu_and_says_so(model_dir: Path) -> None:
    write(model_dir / "mine.py", FALLS_BACK)

    runtime = load(model_dir, device_type="auto")

    assert [answer.body for answer in runtime.run([wire.Row("r", [], [])])] == [b"cpu None"]
    assert len(runtime.notes) == 1
    assert runtime.notes[0].startswith("runs on the CPU: torch cannot use GPU 0: ")


def test_with_auto_the_gpu_is_tried_in_another_process_because_the_handler_may_fork(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tsctl.handlers.sdk.gpu.unusable", lambda gpu, *, runs: f"process {os.getpid()} of GPU {gpu}")
    monkeypatch.setattr("threading.active_count", lambda: 1)

    reason = unusable_apart(2)

    assert reason.endswith(" of GPU 2")
    assert reason != f"process {os.getpid()} of GPU 2"
    monkeypatch.setattr("tsctl.handlers.sdk.gpu.unusable", lambda gpu, *, runs: os._exit(3))
    assert unusable_apart(0) == "a process that tried it ended with 3"


def test_a_worker_without_a_gpu_does_not_touch_cuda(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.init", lambda: pytest.fail("CUDA was touched"))
    write(model_dir / "mine.py", FALLS_BACK)

    assert load(model_dir, gpu_id=None, device_type="auto").notes == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(AssertionError("Torch not compiled with CUDA enabled"), "Torch not compiled with CUDA enabled",
                     id="a build without CUDA"),
        pytest.param(RuntimeError("CUDA error: no kernel image.\nSearch for it"), "CUDA error: no kernel image",
                     id="the first line of an error"),
        pytest.param(torch.OutOfMemoryError("CUDA out of memory. Tried"), "", id="a full GPU is no unusable one"),
        pytest.param(RuntimeError("CUDA error: out of memory"), "", id="nor where there is no room for a context"),
    ],
)  # fmt: skip
def test_the_reason_is_torchs(error: BaseException, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def init() -> None:
        raise error

    monkeypatch.setattr("torch.cuda.init", init)

    assert unusable(0, runs=True) == reason


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        pytest.param("Torch not compiled with CUDA enabled", "build of torch with CUDA", id="a wheel for the CPU"),
        pytest.param(
            "The NVIDIA driver on your system is too old (found version 12020)", "update the NVIDIA driver",
            id="an old driver",
        ),
        pytest.param(
            "CUDA error: no kernel image is available for execution on the device", "architecture", id="a wheel"
            " without the card's architecture",
        ),
        pytest.param("No CUDA GPUs are available", "device files", id="a device that is hidden or closed"),
        pytest.param("CUDA error: unknown error", "nvidia-smi", id="anything else"),
    ],
)  # fmt: skip
def test_each_reason_has_its_remedy(reason: str, remedy: str) -> None:
    assert remedy in remedy_of(reason)


def test_the_program_tells_why_a_gpu_is_unusable_under_its_number() -> None:
    command = [sys.executable, "-P", "-m", "tsctl.handlers.sdk.gpu", "3"]

    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    found = json.loads(said)
    assert found["gpu"] == 3
    assert found["reason"]
    assert found["remedy"]
