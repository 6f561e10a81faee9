"""Which device is measured, and one sentence where there is none."""

import os
import signal
import sys
from dataclasses import dataclass

CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Seen:
    """The GPUs of this machine, as each of three counts them.

    Attributes:
        torch: its version.
        built: torch was built with CUDA.
        usable: GPUs that torch can use.
        daemon: GPUs that the daemon counts, and gives to workers.
        name: of the first one; empty without any.
    """

    torch: str
    built: bool
    usable: int
    daemon: int
    name: str = ""


def look() -> Seen:
    """Ask torch and the daemon's code; initializes CUDA only if there is a GPU."""
    import torch

    from tsctl.daemon.core.machine.cards import ask_cards, find_cards, used_cards

    usable, counted = torch.cuda.device_count(), len(used_cards(os.environ, find_cards(ask_cards).cards))
    name = torch.cuda.get_device_name(0) if usable else ""
    return Seen(str(torch.__version__), torch.version.cuda is not None, usable, counted, name)


def stop_on_term() -> None:
    """Let SIGTERM, by which `timeout` ends a program, raise SystemExit: what it has started is stopped then."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def refusal(device: str, seen: Seen) -> str:
    """Return why nothing can be measured on the device, with the remedy; empty if it can be.

    Args:
        device: `cpu`, or `cuda:N`.
    """
    if device == CPU:
        return ""
    kind, _, number = device.partition(":")
    if kind != "cuda" or not number.isdigit():
        return f"DEVICE is `{device}`: expected `cuda:0`, or `cpu`."
    remedy = "run it on a machine with an NVIDIA GPU, or `make gpu DEVICE=cpu` to try it here with a small network."
    if not seen.built:
        return f"torch {seen.torch} is built without CUDA: install a build with CUDA, or {remedy}"
    if int(number) >= seen.usable:
        return f"There is no GPU `{device}`: torch {seen.torch} can use {seen.usable}. To measure, {remedy}"
    if seen.daemon < seen.usable:
        return (
            f"torch can use {seen.usable} GPUs, and the daemon counts {seen.daemon}: `tsctl doctor` tells what NVML"
            " says, and `tsctl start --gpus N` has the last word."
        )
    return ""
