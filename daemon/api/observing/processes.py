"""Memory and processor time of a process, from `/proc` (proc(5))."""

import os
from pathlib import Path
from typing import NamedTuple

_PAGE = os.sysconf("SC_PAGESIZE")  # bytes
_TICK = 1.0 / os.sysconf("SC_CLK_TCK")  # seconds


class ProcessFacts(NamedTuple):
    """Memory and processor time of a process.

    Attributes:
        memory: resident bytes, with those that it shares with others.
        cpu: seconds of processor time, its own and the kernel's for it.
    """

    memory: int
    cpu: float


def process_facts(pid: int, proc: Path = Path("/proc")) -> ProcessFacts:
    """Return the facts of a process; zeros after its end, and for the process id 0."""
    try:
        return parse_stat((proc / str(pid) / "stat").read_text()) if pid else ProcessFacts(0, 0.0)
    except (OSError, ValueError, IndexError):
        return ProcessFacts(0, 0.0)


def parse_stat(text: str) -> ProcessFacts:
    """Parse `/proc/PID/stat`. The second field, the program's name in parentheses, may contain anything.

    Raises:
        ValueError: the text is not of that form.
        IndexError: the text is not of that form.
    """
    fields = text[text.rindex(")") + 1 :].split()  # the first of these is the third of the file
    return ProcessFacts(int(fields[21]) * _PAGE, (int(fields[11]) + int(fields[12])) * _TICK)
