"""GPUs, and what is held there, in few columns."""

from collections.abc import Callable, Iterable, Mapping


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
