"""`python -m tests.lab`: list what can be run; `python -m tests.lab NAME [ARGUMENT …]` runs it."""

import os
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from tests.lab.programs import GROUPS, PROGRAMS, Program

ROOT = Path(__file__).parent.parent.parent


def listed() -> str:
    """Return the names, each with what it does."""
    lines = ["python -m tests.lab NAME [ARGUMENT …]"]
    for title, programs in GROUPS.items():
        lines += ["", f"{title}:"]
        for name, program in programs.items():
            first = f"  {name:20}"
            lines.append(textwrap.fill(program.about, 120, initial_indent=first, subsequent_indent=" " * len(first)))
    return "\n".join(lines)


def run(program: Program, arguments: Sequence[str]) -> int:
    """Make what the program needs, and run its commands until one fails; return the exit code."""
    if program.needs:
        code = subprocess.run(["make", "--no-print-directory", *program.needs], cwd=ROOT).returncode
        if code:
            return code
    path = os.pathsep.join([str(ROOT / ".venv" / "bin"), str(ROOT / ".tools"), os.environ.get("PATH", os.defpath)])
    sudo = f"sudo --preserve-env env PATH={shlex.quote(path)}" if os.geteuid() else ""
    environment = os.environ | {"PATH": path, "SUDO": sudo}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # see the Makefile
    for command in program.commands:
        code = subprocess.run(["bash", "-c", command, "bash", *arguments], cwd=ROOT, env=environment).returncode
        if code:
            return code
    return 0


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print(listed())
        return 0
    name, *others = arguments
    if name not in PROGRAMS:
        print(f"`{name}` is none of the programs; `python -m tests.lab` lists them", file=sys.stderr)
        return 2
    program = PROGRAMS[name]
    if others and not any('"$@"' in command for command in program.commands):
        print(f"`{name}` takes no arguments: {shlex.join(others)}", file=sys.stderr)
        return 2
    try:
        return run(program, others)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the list may be cut by `head`; what is run begins with the default
    sys.exit(main(sys.argv[1:]))
