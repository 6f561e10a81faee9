"""`make fuzz`: fuzz each target for a while, and compare with a wheel.

    python -m tests.lab.fuzz [--seconds 30] [--folder .fuzz] [TARGET …]

The exit code is 1 if a claim is broken. The input that broke it is printed, and in FOLDER/TARGET:
`python -m tests.lab.fuzz.campaign TARGET FOLDER INPUT` tries it again, and a copy, crashes/TARGET/WHAT-WAS-WRONG, is
tested ever after. The corpus stays, so that the next time goes on from there.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from tests.lab.fuzz.targets import NAMES

COMPILED = "compiled"  # what was found on the sources, and more, on sources and compiled modules side by side
_ALL = (*NAMES, COMPILED)
_WHILE_IT_RUNS = ("INFO: ", "WARNING: ", "#", '"')  # how lines of libFuzzer begin, which are left out


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
    """Fuzz one target, which prints what came of it; return whether every claim holds."""
    print(f"{name}:", flush=True)
    if name == COMPILED:
        program = ["tests.lab.fuzz.compiled", "--seconds", str(seconds), "--folder", str(folder)]
    else:
        program = ["tests.lab.fuzz.campaign", name, str(folder / name), f"-max_total_time={seconds}"]
    done = subprocess.run([sys.executable, "-m", *program], stderr=subprocess.PIPE, text=True, errors="replace")
    told = [line for line in done.stderr.splitlines() if "\tDONE" in line or not line.startswith(_WHILE_IT_RUNS)]
    print(*told, sep="\n", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
