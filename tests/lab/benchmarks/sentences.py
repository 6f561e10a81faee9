"""Texts with the lengths of real questions for the encoder of text_handler.py, and the right answer to the first.

`python -m tests.lab.benchmarks.sentences FILE` prints the handler's answer to a text: in a process of its own, so that
nothing of torch stays in the one that measures.
"""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.lab.benchmarks.environments import ROOT
from tests.lab.lengths import QUESTIONS

COUNT = 100
NEAR = 0.02  # of the mean of an embedding, absolute: they have a deviation of 1; padding and batches round differently


def text(chance: random.Random) -> bytes:
    """Return words of 4 letters, as many bytes as a question has."""
    size = chance.choice(QUESTIONS)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=4)) for _ in range(size // 5 + 1)]
    return " ".join(words)[:size].encode()


def write(folder: Path) -> list[Path]:
    """Write the texts, a file each; always the same ones."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random("sentences")
    files = [folder / f"{number}.txt" for number in range(COUNT)]
    for file in files:
        file.write_bytes(text(chance))
    return files


def right_of(file: Path, kept: Path) -> Callable[[bytes], bool]:
    """Return the check of an answer to this text; the right one is computed if it is not in the file `kept`."""
    if not kept.is_file():
        command = [sys.executable, "-m", "tests.lab.benchmarks.sentences", str(file)]
        kept.write_text(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    wanted = json.loads(kept.read_text())

    def right(answer: bytes) -> bool:
        try:
            found = json.loads(answer)
            return bool(found["tokens"] == wanted["tokens"] and abs(found["mean"] - wanted["mean"]) < NEAR)
        except (ValueError, TypeError, LookupError):
            return False

    return right


def main(file: str) -> None:
    from tests.lab.benchmarks.text_handler import Encoder

    encoder = Encoder()
    encoder.initialize(None)
    [answer] = encoder.handle([{"body": Path(file).read_bytes()}], None)
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])
