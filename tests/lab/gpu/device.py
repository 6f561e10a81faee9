"""Why a device cannot be measured, in one sentence; and a program that is stopped stops what it has started."""

import os
import signal
import sys

CPU = "cpu"


def stop_on_term() -> None:
    """Let SIGTERM, by which `timeout` ends a program, raise SystemExit: what it has started is stopped then."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def refusal(device: str) -> str:
    """Return why nothing can be measured on the device, `cpu` or `cuda:N`, with the remedy; empty if it can be."""
    import torch

    from tsctl.daemon.core.machine.cards import ask_cards, find_cards, used_cards

    kind, _, number = device.partition(":")
    if device == CPU:
        return ""
    if kind != "cuda" or not number.isdigit():
        return f"DEVICE is `{device}`: expected `cuda:0`, or `cpu`."
    remedy = "run it on a machine with an NVIDIA GPU, or `make gpu DEVICE=cpu` to try it here with a small network."
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA: install a build with CUDA, or {remedy}"
    usable, counted = torch.cuda.device_count(), len(used_cards(os.environ, find_cards(ask_cards).cards))
    if int(number) >= usable:
        return f"There is no GPU `{device}`: torch {torch.__version__} can use {usable}. To measure, {remedy}"
    if counted < usable:
        return (
            f"torch can use {usable} GPUs, and the daemon counts {counted}: `tsctl doctor` tells what NVML says, and "
            "`tsctl start --gpus N` has the last word."
        )
    return ""
