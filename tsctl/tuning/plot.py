"""A scatter plot in text."""

import math
from collections.abc import Sequence
from typing import NamedTuple


class Dot(NamedTuple):
    """A point and its character."""

    x: float
    y: float
    mark: str


def scatter(dots: Sequence[Dot], x_name: str, y_name: str, width: int = 64, height: int = 12) -> list[str]:
    """Return the drawing's lines of text; both axes are logarithmic, and a later dot covers an earlier one.

    Args:
        dots: at least one; both values above zero.
        width, height: of the drawing itself, in characters, without the axes' labels.
    """
    xs, ys = _Axis([dot.x for dot in dots], width), _Axis([dot.y for dot in dots], height)
    grid = [[" "] * width for _ in range(height)]
    for dot in dots:
        grid[height - 1 - ys.place(dot.y)][xs.place(dot.x)] = dot.mark
    margin = max(len(label) for label in (ys.low_text, ys.high_text))
    labels = [""] * height
    labels[0], labels[-1] = ys.high_text, ys.low_text
    lines = [y_name]
    lines += [f"{label:>{margin}} │{''.join(row).rstrip()}" for label, row in zip(labels, grid, strict=True)]
    lines.append(f"{'':{margin}} └{'─' * width}")
    ends = f"{xs.low_text}{xs.high_text:>{width - len(xs.low_text)}}"
    middle = (width - len(x_name)) // 2
    if ends[middle - 1 : middle + len(x_name) + 1].isspace():
        ends = ends[:middle] + x_name + ends[middle + len(x_name) :]
    lines.append(f"{'':{margin}}  {ends}")
    return lines


class _Axis:
    """Maps values to places 0 … length − 1, by their logarithm, with a little room at both ends."""

    def __init__(self, values: Sequence[float], length: int) -> None:
        low, high = min(values), max(values)
        if high / low < 1.1:  # one value, or nearly: in the middle
            low, high = low / 1.1, high * 1.1
        self._low, self._high, self._length = low, high, length
        self.low_text, self.high_text = _text(low), _text(high)

    def place(self, value: float) -> int:
        share = math.log(value / self._low) / math.log(self._high / self._low)
        return min(self._length - 1, max(0, round(share * (self._length - 1))))


def _text(value: float) -> str:
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"
