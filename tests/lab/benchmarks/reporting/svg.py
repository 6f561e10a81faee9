"""Pictures: horizontal bars, and curves over a logarithmic axis. Plain SVG, for light and dark themes."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH = 720
LABEL = 148  # the width that labels of bars have
_STYLE = (
    "<style>text{font:13px system-ui,sans-serif;fill:#24292f}.t{font-weight:600;font-size:14px}.g{fill:#57606a}"
    ".o{fill:#0969da}.p{fill:#afb8c1}.l{stroke:#d0d7de}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.g{fill:#8d96a0}.p{fill:#57606a}.o{fill:#4493f8}"
    ".l{stroke:#30363d}}</style>"
)
_COLOURS = ("#0969da", "#bf8700", "#1a7f37", "#cf222e", "#8250df")


class Bar(NamedTuple):
    """A bar of at least 0, with a label before it and a text at its end; ours are emphasised."""

    label: str
    value: float
    shown: str
    ours: bool


def bars(title: str, groups: Mapping[str, Sequence[Bar]]) -> str:
    """Draw groups of bars on one scale; each group has a heading."""
    most = max((bar.value for rows in groups.values() for bar in rows), default=0.0) or 1.0
    parts, y = [_text(0, 16, title, "t")], 34
    for heading, rows in groups.items():
        parts.append(_text(0, y + 4, heading, "g"))
        y += 12
        for bar in rows:
            length = max(1.0, bar.value / most * (WIDTH - LABEL - 150))
            parts.append(_text(LABEL - 8, y + 13, bar.label, "", "end"))
            kind = "o" if bar.ours else "p"
            parts.append(f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{length:.1f}" height="17" rx="2"/>')
            parts.append(_text(LABEL + 6 + length, y + 13, bar.shown))
            y += 22
        y += 14
    return _document("".join(parts), y)


def curves(title: str, series: Mapping[str, Sequence[tuple[float, float]]], x_label: str, y_label: str) -> str:
    """Draw curves through points (x, y), both above 0, x on a logarithmic axis, y from 0."""
    points = [point for line in series.values() for point in line]
    left, right, top, bottom = 60, WIDTH - 20, 40, 260
    low, high = math.log10(min(x for x, _ in points)), math.log10(max(x for x, _ in points))
    most = max(y for _, y in points) * 1.15

    def place(x: float, y: float) -> tuple[float, float]:
        share = (math.log10(x) - low) / ((high - low) or 1.0)
        return left + share * (right - left), bottom - y / most * (bottom - top)

    parts = [_text(0, 16, title, "t"), _text(left, 34, y_label, "g"), _text(right, bottom + 34, x_label, "g", "end")]
    for exponent in range(math.ceil(low), math.floor(high) + 1):
        x, _ = place(10.0**exponent, 0)
        parts.append(f'<line class="l" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 16, f"{10**exponent:,}".replace(",", " "), "g", "middle"))
    for share in (0.0, 0.5, 1.0):
        _, y = place(10**low, most * share / 1.15)
        parts.append(f'<line class="l" x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(_text(left - 6, y + 4, f"{most * share / 1.15:.3g}", "g", "end"))
    for colour, (name, line) in zip(_COLOURS, series.items(), strict=False):
        path = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = place(*line[-1])
        parts.append(
            f'<text x="{x - 6:.1f}" y="{y - 8:.1f}" text-anchor="end" style="fill:{colour}">{escape(name)}</text>'
        )
    return _document("".join(parts), bottom + 44)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _document(content: str, height: float) -> str:
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{_STYLE}{content}</svg>\n'
