"""The readers, by name; a campaign imports the one that it is for. Those of extensions are in files named fuzz_NAME."""

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.places import ROOT

CRASHES = ROOT / "tests/lab/fuzz/crashes"  # what once broke a claim: TARGET/what-was-wrong


@dataclass(frozen=True, slots=True)
class Target:
    """One reader, with examples of what it reads.

    Attributes:
        check: reads the bytes, and raises if a claim about the reader is broken. It keeps nothing, and returns what
            it has seen: the same each time, and whatever runs it (compiled.py).
        examples: what fuzzing begins with; it makes no other claim than any bytes.
        words: pieces of the language, for the fuzzer to put together.
        close: stops what `check` has started, if there is anything.
    """

    check: Callable[[bytes], object]
    examples: Iterable[bytes]
    words: Iterable[bytes] = ()
    close: Callable[[], None] = lambda: None


_OF_EXTENSIONS = {
    file.stem.removeprefix("fuzz_"): f"tests.extensions.{file.parent.name}.{file.stem}"
    for file in sorted((ROOT / "tests/extensions").glob("*/fuzz_*.py"))
}

# Those whose readers are compiled in a wheel, if only in part; of extensions, those that are there.
COMPILED = (
    "frames", "conversation", "forms", "receiver", "repeated", "answers", "typed",
    *(name for name in ("tensors", "modelinfer") if name in _OF_EXTENSIONS),
)  # fmt: skip
NAMES = tuple(dict.fromkeys((*COMPILED, "manifest", "properties", "modelconfig", *_OF_EXTENSIONS)))


def target(name: str) -> Target:
    found: Target = importlib.import_module(_OF_EXTENSIONS.get(name, f"{__name__}.{name}")).TARGET
    return found
