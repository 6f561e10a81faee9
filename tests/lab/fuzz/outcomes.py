"""The outcome of each input, in this interpreter: `python -m tests.lab.fuzz.outcomes`, for compiled.py.

A line is a target and an input in base64; the answer is a line: a digest of all that was seen, and its beginning.
"""

import base64
import hashlib
import os
import re
import sys
import traceback

from tests.lab.fuzz.targets import target

BROKEN = "broken "  # begins the outcome of an input that breaks a claim
_SHOWN = 300  # characters
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def outcome(name: str, data: bytes) -> str:
    """Return one line: what the target saw of these bytes, or how they broke a claim."""
    try:
        seen = repr(target(name).check(data))
    except Exception as error:  # noqa: BLE001 - that is an outcome, too
        last = traceback.extract_tb(error.__traceback__)[-1]
        seen = f"{BROKEN}{type(error).__name__} in {os.path.basename(last.filename)}: {error}"
    seen = _ADDRESS.sub("0x", seen)
    digest = hashlib.sha256(seen.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{digest} {ascii(seen[:_SHOWN])[1:-1]}"


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a reader prints is no answer
    for line in sys.stdin:
        name, text = line.split()
        answers.write(outcome(name, base64.b64decode(text)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
