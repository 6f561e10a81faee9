"""Pictures: horizontal bars. Plain SVG, for light and dark themes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH = 720
LABEL = 148  # the width that labels of bars have
_STYLE = (
    "<style>text{font:13px system-ui,sans-serif;fill:#24292f}.t{font-weight:600;font-size:14px}.g{fill:#57606a}"
    ".o{fill:#0969da}.p{fill:#afb8c1}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.g{fill:#8d96a0}.p{fill:#57606a}.o{fill:#4493f8}"
    "}</style>"
)


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


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _document(content: str, height: float) -> str:
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{_STYLE}{content}</svg>\n'
