"""A reader that is fuzzed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


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
