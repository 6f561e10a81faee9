"""This machine's GPUs, as `nvidia-smi` reports them. Without that program there are none.

The program takes from 20 ms to seconds and can hang with its driver, so it runs beside the loop: one at a
time, with a timeout, and not again for a while after a failure. Reads within `FRESH`
seconds of an answer get the same.
"""

import asyncio
import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from tsctl.daemon.core.clock import Clock

FRESH = 5.0  # seconds
TIMEOUT = 3.0  # seconds
LAST_WORDS = 1.0  # seconds that the program may take to die
BACKOFF = 60.0  # seconds without another attempt after a failure
QUERY = ("--query-gpu=index,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. `busy` is None where the driver does not report it, as with MIG."""

    index: str
    busy: float | None  # percent
    used: float  # megabytes
    total: float  # megabytes


def parse_gpus(text: str) -> list[Gpu]:
    """Parse a line for each GPU: index, percent busy, MiB used, MiB in all. A missing number is `[N/A]`."""
    gpus = []
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        with contextlib.suppress(ValueError):  # another line, or a GPU without numbers
            index, busy, used, total = words
            gpus.append(Gpu(index, float(busy) if busy.isdigit() else None, float(used), float(total)))
    return gpus


class Gpus:
    """Reads the GPUs' state.

    Args:
        program: `nvidia-smi`, or None if this machine has none.
    """

    def __init__(self, clock: Clock, program: str | None) -> None:
        self._clock = clock
        self._program = program
        self._gpus: list[Gpu] = []
        self._next = clock.now()  # the time of the next query
        self._asking: asyncio.Task[None] | None = None

    @classmethod
    def of_this_machine(cls, clock: Clock, which: Callable[[str], str | None] = shutil.which) -> "Gpus":
        return cls(clock, which("nvidia-smi"))

    @property
    def any(self) -> bool:
        """Whether this machine has the program."""
        return self._program is not None

    async def read(self) -> list[Gpu]:
        """Return the GPUs; none while the program fails. Takes at most little more than `TIMEOUT`."""
        if self._program is not None and self._clock.now() >= self._next:
            if self._asking is None:
                self._asking = asyncio.ensure_future(self._ask(self._program))
            await asyncio.shield(self._asking)
        return self._gpus

    async def _ask(self, program: str) -> None:
        gpus: list[Gpu] = []
        try:
            gpus = parse_gpus(await _output_of(program))
        except (OSError, TimeoutError):
            pass
        finally:
            self._gpus, self._asking = gpus, None
            self._next = self._clock.now() + (FRESH if gpus else BACKOFF)


async def _output_of(program: str) -> str:
    process = await asyncio.create_subprocess_exec(
        program, *QUERY,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(TIMEOUT):
            output, _ = await process.communicate()
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        if isinstance(error, TimeoutError):
            with contextlib.suppress(TimeoutError):  # one that hangs in its driver stays
                async with asyncio.timeout(LAST_WORDS):
                    await process.wait()
        raise
    return output.decode("utf-8", "replace")
