"""A handler's device, and whether torch can use the GPU that a worker was given; nothing falls back in silence.

A worker whose torch cannot use its GPU fails its load with torch's reason, unless the model has `deviceType: auto`:
then it runs on the CPU, and says so in its notes. Nothing here is called on the CPU: in a template, which forks, CUDA
must not be touched.

`python -P -m tsctl.handlers.sdk.gpu NUMBER` runs a kernel on the only GPU that it sees, for `tsctl doctor`, and prints
the reason of the failure, or an empty text, as JSON. A driver that hangs takes this process along.
"""

import contextlib
import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from tsctl.handlers.sdk.errors import HandlerError

if TYPE_CHECKING:
    import torch

# A part of torch's message → what to do. Texts of torch 2.6 to 2.14.
_REMEDIES = {
    "not compiled with CUDA": "install a build of torch with CUDA",
    "too old": "update the NVIDIA driver, or install a build of torch for an older CUDA",
    "no kernel image": "install a build of torch that has kernels for this GPU's architecture",
    "no NVIDIA driver": "install the NVIDIA driver; in a container: `docker run --gpus all`",
    "No CUDA GPUs": "see that the process may open the device files /dev/nvidia*, and CUDA_VISIBLE_DEVICES",
    "busy or unavailable": "end the other program on it, or let several use it: `nvidia-smi --compute-mode=DEFAULT`",
    "invalid device ordinal": "name the number of usable GPUs: `tsctl start --gpus N`",
    "only sees": "name the number of usable GPUs: `tsctl start --gpus N`",
}


def device_of(handler: Any) -> "torch.device":
    """Return the device that a handler's `device` names, as torch's or by a text; the CPU where it names none.

    It keeps what a user's class has set: anything, a microphone too, or a property that raises.
    """
    import torch

    with contextlib.suppress(Exception):
        named = handler.device
        if isinstance(named, str | torch.device):
            return torch.device(named)
    return torch.device("cpu")


def wait_for_gpus() -> None:
    """Wait for all GPUs on which this process has a context; to wait for another one would make a context there."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return
    # torch's own answer is private. Without it: where torch has ever held memory, there is a context.
    has_context = getattr(torch._C, "_cuda_hasPrimaryContext", torch.cuda.max_memory_reserved)
    for gpu in range(torch.cuda.device_count()):
        if has_context(gpu):
            torch.cuda.synchronize(gpu)


def remedy_of(reason: str) -> str:
    """Return what to do about a reason why torch cannot use a GPU."""
    return next((remedy for part, remedy in _REMEDIES.items() if part in reason), "see `nvidia-smi`, and the driver")


def unusable(gpu: int, *, runs: bool) -> str:
    """Return why torch cannot use the GPU of this number, in torch's words; empty if it can. Imports torch.

    One whose memory is full can be used: the load that needs some fails, and is tried again.

    Args:
        runs: whether to run a kernel, which makes a context: that takes memory on the GPU, some 500 MiB on an H100.
    """
    import torch

    try:
        torch.cuda.init()
        found = torch.cuda.device_count()
        if gpu >= found:
            return f"torch only sees {found} GPU{'' if found == 1 else 's'}"
        if runs:
            torch.ones(1, device=f"cuda:{gpu}").add(1).item()
    except (RuntimeError, AssertionError) as error:  # the latter by a build without CUDA
        if "out of memory" in str(error):
            return ""
        return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
    return ""


def refusal(gpu: int, reason: str) -> str:
    """Return the sentence about a GPU that torch cannot use."""
    import torch

    return (
        f"this worker was given GPU {gpu}, but torch {torch.__version__} cannot use it: {reason};"
        f" {remedy_of(reason)}. `deviceType: auto` in model-config.yaml allows the CPU, `cpu` asks for it, and"
        " `tsctl start --gpus 0` for all models."
    )


def check_gpu(gpu: int) -> None:
    """Raise HandlerError if torch cannot run a kernel on the GPU of a worker."""
    reason = unusable(gpu, runs=True)
    if reason:
        raise HandlerError(refusal(gpu, reason))


def check_after_load(gpu: int) -> None:
    """Raise HandlerError if a handler that has loaded its model may have passed over a GPU that torch cannot use.

    Its own code chooses the device, often by `torch.cuda.is_available()`. Without torch in the process the handler uses
    the GPU in another way, or not at all. Looked at after the load: CUDA cannot be used in forked processes once it is
    initialized, which the handler may have started.
    """
    torch = sys.modules.get("torch")
    if torch is None or torch.cuda.is_initialized():
        return
    reason = unusable(gpu, runs=False)
    if reason:
        raise HandlerError(refusal(gpu, reason))


def unusable_apart(gpu: int) -> str:
    """Do as `unusable`, in a forked process: handlers may fork before they use CUDA, and not after.

    In this one where threads run, whose locks a forked process would keep for ever.
    """
    if threading.active_count() > 1:
        return unusable(gpu, runs=True)
    told, tell = os.pipe()
    pid = os.fork()
    if not pid:
        with contextlib.suppress(BaseException):
            os.write(tell, unusable(gpu, runs=True).encode())
            os._exit(0)
        os._exit(1)
    os.close(tell)
    with open(told, encoding="utf-8") as reading:
        reason = reading.read()
    _, status = os.waitpid(pid, 0)
    return reason or (f"a process that tried it ended with {os.waitstatus_to_exitcode(status)}" if status else "")


def on_the_cpu(gpu: int) -> str:
    """Return a note for a model with `deviceType: auto` that cannot use the GPU; empty if it can."""
    reason = unusable_apart(gpu)
    return f"runs on the CPU: torch cannot use GPU {gpu}: {reason}; {remedy_of(reason)}" if reason else ""


def main(number: int) -> None:
    reason = unusable(0, runs=True)
    print(json.dumps({"gpu": number, "reason": reason, "remedy": reason and remedy_of(reason)}))  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]))
