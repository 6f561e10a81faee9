"""How busy the GPU is while something else runs, from `nvidia-smi`, read twice a second."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

EVERY_MS = 500
QUERY = ("--query-gpu=index,utilization.gpu", "--format=csv,noheader,nounits")


@dataclass
class Busy:
    """The readings of one GPU; without any, the machine has no program that tells."""

    readings: list[float] = field(default_factory=list)

    @property
    def percent(self) -> float | None:
        """The mean share of the time in which a kernel ran, in percent; None if it was not read."""
        return sum(self.readings) / len(self.readings) if self.readings else None


@contextmanager
def watched(index: str, program: str | None = None) -> Iterator[Busy]:
    """Read the GPU of this index while the block runs; the figures are there after it.

    Args:
        program: `nvidia-smi`, where it is another one.
    """
    busy = Busy()
    program = program or shutil.which("nvidia-smi")
    if program is None:
        yield busy
        return
    command = [program, *QUERY, f"--loop-ms={EVERY_MS}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reading:
        try:
            yield busy
        finally:
            reading.terminate()
            output, _ = reading.communicate()
            rows = [[word.strip() for word in line.split(",")] for line in output.splitlines()]
            busy.readings += [float(row[1]) for row in rows if row[0] == index and row[-1].isdigit()]
