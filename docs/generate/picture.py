"""README's picture: `python -m docs.generate.picture` serves the example `typed-handler` in a real terminal, and asks it.

Writes docs/pictures/terminal.svg. What the commands print is shown as it is, but for the lines of progress that they
erase themselves. The numbers are those of the machine that draws.
"""

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pexpect
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "pictures" / "terminal.svg"
WIDTH = 92
# A display that is erased: hidden cursor, lines, shown cursor, up and erase.
PROGRESS = re.compile(r"\x1b\[\?25l.*?\x1b\[\?25h\r\x1b\[1A\x1b\[2K", re.DOTALL)
FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)  # they would be loaded from another host
SERVE = "tsctl serve flowers.py --watch"
COMMANDS = (
    "curl http://127.0.0.1:8080/predictions/flowers -d @row.json",
    "tsctl bench flowers row.json -c 16 -t 5",
)


def main() -> None:
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"))
    with tempfile.TemporaryDirectory(prefix="tsctl-") as name:
        folder = Path(name)
        shutil.copy(ROOT / "docs" / "examples" / "typed-handler" / "flowers.py", folder)
        (folder / "row.json").write_text("[5.1, 3.5, 1.4, 0.2]\n")
        own = {"TSCTL_SOCKET": f"{name}/control.sock"}
        found = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TERM": "xterm-256color"}
        environment = os.environ | own | found
        serving = pexpect.spawn(
            "bash", ["-c", f"exec {SERVE}"], cwd=folder, env=environment, timeout=120, encoding="utf-8",
            dimensions=(50, WIDTH),
        )  # fmt: skip
        try:
            serving.expect(r"\ncurl (?:[^\n]*\\\r?\n)*[^\n]*\n")
            draw(console, SERVE, str(serving.before) + str(serving.after))
            console.print(Text("# in another terminal", style="dim"))
            for command in COMMANDS:
                draw(console, command, typed(command, folder, environment))
        finally:
            serving.sendintr()
            serving.expect(pexpect.EOF)
            serving.close()
    PICTURE.parent.mkdir(exist_ok=True)
    svg = console.export_svg(title="tsctl", theme=MONOKAI, code_format=FONTS.sub("", CONSOLE_SVG_FORMAT), unique_id="t")
    PICTURE.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")
    print(PICTURE)


def draw(console: Console, command: str, output: str) -> None:
    """Print a command and its output, without the lines of progress that it has erased."""
    console.print(Text("$ ", style="bold green") + Text(command, style="bold"), soft_wrap=True)
    console.print(Text.from_ansi(PROGRESS.sub("", output).replace("\r\n", "\n").rstrip("\n")), soft_wrap=True)
    console.print()


def typed(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a command in a terminal; return what it printed.

    Raises:
        SystemExit: its exit code is not 0.
    """
    child = pexpect.spawn(
        "bash", ["-c", command], cwd=folder, env=environment, timeout=120, encoding="utf-8", dimensions=(50, WIDTH)
    )
    child.expect(pexpect.EOF)
    child.close()
    if child.exitstatus != 0:
        raise SystemExit(f"`{command}` ended with exit code {child.exitstatus}:\n{child.before}")
    return str(child.before)


if __name__ == "__main__":
    main()
