"""README's badges: `python -m docs.generate.badges` draws docs/pictures/badges.svg from pyproject.toml.

Drawn here, so that a reader of a clone sees them without another host, and none of them claims a state of CI that
nobody measured.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "pictures" / "badges.svg"
HEIGHT, GAP, PADDING = 20, 6, 6  # pixels
LETTER = 6.6  # pixels of a character in the font below, about
PYTHON = re.compile(r"Programming Language :: Python :: (3\.\d+)")
SYSTEM = re.compile(r"Operating System :: .*:: (\w+)$")


def badges() -> list[tuple[str, str]]:
    """Return (name, value) of each badge, from the project's classifiers and license."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    classifiers = project["classifiers"]
    pythons = [match[1] for each in classifiers if (match := PYTHON.fullmatch(each))]
    systems = [match[1] for each in classifiers if (match := SYSTEM.search(each))]
    typed = [("types", "mypy strict")] if "Typing :: Typed" in classifiers else []
    return [
        ("version", project["version"]),
        ("python", f"{pythons[0]} – {pythons[-1]}"),
        ("system", ", ".join(systems)),
        ("license", project["license"]),
        *typed,
    ]


def draw(shown: list[tuple[str, str]]) -> str:
    """Return an SVG with the badges in a row."""
    parts, left = [], 0.0
    for name, value in shown:
        first, second = (len(text) * LETTER + 2 * PADDING for text in (name, value))
        middle, text_line = left + first, HEIGHT - 6
        parts.append(
            f'<rect x="{left:.1f}" width="{first + second:.1f}" height="{HEIGHT}" rx="3" fill="#2d6cdf"/>'
            f'<path d="M{middle:.1f} 0H{left + 3:.1f}a3 3 0 0 0-3 3v14a3 3 0 0 0 3 3H{middle:.1f}z" fill="#444"/>'
            f'<text x="{left + first / 2:.1f}" y="{text_line}">{name}</text>'
            f'<text x="{middle + second / 2:.1f}" y="{text_line}">{value}</text>'
        )
        left += first + second + GAP
    label = ", ".join(f"{name}: {value}" for name, value in shown)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left - GAP:.1f}" height="{HEIGHT}" role="img" aria-label="{label}">'
    style = '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
    return "\n".join([head, style, *parts, "</g>", "</svg>"]) + "\n"


def main() -> None:
    PICTURE.write_text(draw(badges()))
    print(PICTURE)


if __name__ == "__main__":
    main()
