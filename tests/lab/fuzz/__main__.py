"""`make fuzz`: fuzz each target for a while, ask a daemon what its descriptions allow, and compare with a wheel.

    python -m tests.lab.fuzz [--seconds 30] [--folder .fuzz] [TARGET …]

The exit code is 1 if a claim is broken. What was found is in FOLDER/TARGET. The corpus stays, so that the next
time goes on from there.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.lab.fuzz.targets import NAMES

CRASHES = Path(__file__).parent / "crashes"
DESCRIPTION = "description"
COMPILED = "compiled"  # what was found on the sources, and more, on sources and compiled modules side by side
_ALL = (*NAMES, DESCRIPTION, COMPILED)
_END = re.compile(r"#(\d+)\s+DONE\s+cov: (\d+)")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.fuzz")
    parser.add_argument("--seconds", type=int, default=30, help="for each target")
    parser.add_argument("--folder", type=Path, default=Path(".fuzz"))
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(_ALL))
    given = parser.parse_args()
    if unknown := set(given.targets) - set(_ALL):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    broken = [name for name in given.targets or _ALL if not _holds(name, given.folder, given.seconds)]
    if broken:
        print(f"broken: {', '.join(broken)}")
    return 1 if broken else 0


def _holds(name: str, folder: Path, seconds: int) -> bool:
    """Fuzz one target, and say what came of it."""
    print(f"{name}: ", end="", flush=True)
    if name == DESCRIPTION:
        return subprocess.run([sys.executable, "-m", "tests.lab.fuzz.described", str(seconds)]).returncode == 0
    if name == COMPILED:
        print("building the wheel", flush=True)
        program = [sys.executable, "-m", "tests.lab.fuzz.compiled", "--seconds", str(seconds), "--folder", str(folder)]
        return subprocess.run(program).returncode == 0
    folder /= name
    before = _crashes(folder)
    program = [sys.executable, "-m", "tests.lab.fuzz.campaign", name, str(folder), f"-max_total_time={seconds}"]
    done = subprocess.run(program, capture_output=True, text=True, errors="replace")
    end = _END.search(done.stderr)
    if done.returncode == 0 and end:
        print(f"{int(end[1]):,} inputs ran {end[2]} edges, and every claim holds")
        return True
    print(f"broken\n{_told(done.stdout + done.stderr)}")
    kept = os.path.relpath(CRASHES / name)
    for crash in sorted(_crashes(folder) - before):
        print(f"\nthe input: {crash.read_bytes()!r}")
        print(f"try it again:   python -m tests.lab.fuzz.campaign {name} {folder} {crash}")
        print(f"keep it tested: mkdir -p {kept} && cp {crash} {kept}/WHAT-WAS-WRONG")
    return False


def _crashes(folder: Path) -> set[Path]:
    return {path for path in folder.glob("*-*") if path.is_file()}


def _told(text: str) -> str:
    """The output from the exception on; libFuzzer's own lines are left out."""
    lines = [line for line in text.splitlines() if not line.startswith(("INFO: ", "WARNING: ", "#"))]
    return "\n".join(lines)[:4000]


if __name__ == "__main__":
    sys.exit(main())
