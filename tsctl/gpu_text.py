"""GPUs, their names and memory, and what is held there, in few columns."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any


def card_rows(gpus: Sequence[Mapping[str, Any]], used: Collection[int] | None = None) -> list[tuple[str, str]]:
    """Return title and text of GPUs, those that are alike together: `GPU 0-3`, `NVIDIA H100, 79.6 GiB each`.

    Args:
        gpus: of the daemon, as its status tells them.
        used: numbers of those that are wanted; None for all.
    """
    from tsctl.render import bytes_text

    alike: dict[str, list[int]] = {}
    for number, gpu in enumerate(gpus):
        if used is None or number in used:
            text = f"{gpu['name']}, {bytes_text(gpu['memory'])}" if gpu["name"] else "NVIDIA"
            alike.setdefault(text, []).append(number)
    return [
        (f"GPU {_numbers(numbers)}", f"{text} each" if len(numbers) > 1 else text) for text, numbers in alike.items()
    ]


def gpus_of(models: Iterable[Mapping[str, Any]]) -> set[int]:
    """Return the numbers of the GPUs on which versions, or workers, hold memory: those of their `gpuMemory`."""
    return {int(gpu) for model in models for gpu in model.get("gpuMemory", ())}


def held_text(held: Mapping[str, int | None], size_text: Callable[[int], str]) -> str:
    """Return the numbers of GPUs, and what is held on all of them: `0-3,6 61.0 GiB`; `-` without any.

    Args:
        held: GPU → bytes, None while that is unknown.
        size_text: writes a number of bytes.
    """
    if not held:
        return "-"
    known = [size for size in held.values() if size is not None]
    return " ".join([_numbers(map(int, held)), *([size_text(sum(known))] if known else [])])


def _numbers(gpus: Iterable[int]) -> str:
    """Return numbers in their order, those that follow one another as a range."""
    ranges: list[list[int]] = []
    for gpu in sorted(gpus):
        if ranges and ranges[-1][-1] == gpu - 1:
            ranges[-1][1:] = [gpu]
        else:
            ranges.append([gpu])
    return ",".join("-".join(map(str, each)) for each in ranges)
