"""The process of a trial: `python -P -m tsctl.daemon.extensions.optimizing.measuring`, one at a time."""

import asyncio
import contextlib
import io
import math
import random
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tsctl.daemon.extensions.optimizing.choice import TrialRow
from tsctl.daemon.models.archives.sample import Sample, warmup_sample
from tsctl.handlers.names import usual_optimizations

MADE_UP = "made up"
SIZE, PATCHES = (500, 375), (20, 15)  # pixels, and patches


def sample_for(recorded: Sample | None, directory: Path, document: Mapping[str, Any], handler: str) -> Sample | None:
    """Return the request; None if the handler takes no images, and there is no sample. Blocks."""
    found = recorded or warmup_sample(directory, document)
    if found is None and usual_optimizations(handler):  # those read images
        return Sample(made_up_image(), "image/png", MADE_UP)
    return found


def made_up_image() -> bytes:
    """Return a PNG of 500 × 375 pixels, RGB, the same each time: patches under fine noise."""
    from PIL import Image  # here, because a daemon without trials saves the time

    chance, written = random.Random(7), io.BytesIO()
    patches, noise = (Image.frombytes("RGB", size, chance.randbytes(3 * math.prod(size))) for size in (PATCHES, SIZE))
    patches = patches.resize(SIZE, Image.Resampling.NEAREST)
    Image.blend(patches, noise, 1 / 8).save(written, "PNG", compress_level=1)
    return written.getvalue()


PROGRAM = (sys.executable, "-P", "-m", "tsctl.daemon.extensions.optimizing.measuring")
LONGEST = 1800.0  # seconds: on a machine without idle time a trial does not end
END_TIME = 5.0  # seconds in which the process ends its workers
_LINE = 1 << 20  # bytes of a message, at most
_SHOWN = 10  # lines of the process's errors


class TrialFailed(Exception):
    """A trial has no result; the message says why."""


class TrialRows(msgspec.Struct, rename="camel"):
    """The last message of the process."""

    rows: list[TrialRow]


# order, body, environment, progress → the result
RunTrial = Callable[
    [Mapping[str, Any], bytes, Mapping[str, str], Callable[[str], None]], Coroutine[Any, Any, TrialRows]
]


async def run_trial(
    order: Mapping[str, Any], body: bytes, environment: Mapping[str, str], progress: Callable[[str], None]
) -> TrialRows:
    """Run a trial to its end; if cancelled, end its process and workers first.

    Args:
        order: as in daemon/extensions/optimizing/measuring/__main__.py.
        progress: called with the present step of the trial, in words.

    Raises:
        TrialFailed: the trial has no result.
    """
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *PROGRAM, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(environment), limit=_LINE
        )
    except OSError as error:
        raise TrialFailed(f"its process cannot be started: {error.strerror}") from error
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    errors = asyncio.ensure_future(_last_lines(process.stderr))
    try:
        process.stdin.write(msgspec.json.encode(order) + b"\n" + body)
        async with asyncio.timeout(LONGEST):
            return await _read(process.stdout, errors, progress)
    except TimeoutError:
        raise TrialFailed(f"it took longer than {LONGEST:.0f} s: the machine has no idle time") from None
    except ValueError as error:  # a line that is too long
        raise TrialFailed(f"its process sent an invalid message: {error}") from None
    finally:
        await _end(process)
        errors.cancel()


async def _read(
    stream: asyncio.StreamReader, errors: "asyncio.Future[list[str]]", progress: Callable[[str], None]
) -> TrialRows:
    while line := await stream.readline():
        try:
            message = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            raise TrialFailed(f"its process sent an invalid message: {error}") from error
        match message.get("stage"):
            case "loading" | "measuring" as stage:
                progress(f"{stage} with {message['optimize']} ({message['done'] + 1} of {message['total']})")
            case "failed":
                raise TrialFailed(message["message"])
            case "done":
                return msgspec.convert(message, TrialRows)
    said = await errors
    raise TrialFailed(f"its process ended without a result{': ' + said[-1] if said else ''}")


async def _last_lines(stream: asyncio.StreamReader) -> list[str]:
    """Read to the end, so that the process never waits for a reader; return its last lines, except too long ones."""
    kept: deque[str] = deque(maxlen=_SHOWN)
    while True:
        try:
            line = await stream.readline()
        except ValueError:  # too long
            continue
        if not line:
            return list(kept)
        kept.append(line.decode("utf-8", "replace").strip())


async def _drain(stream: asyncio.StreamReader) -> None:
    """Read to the end, and keep nothing."""
    while await stream.read(_LINE):
        pass


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close the process's stdin, which ends it with its workers; kill it if that takes too long."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    rest = asyncio.ensure_future(_drain(process.stdout))  # asyncio's own loop waits for the end of the output, too
    try:
        async with asyncio.timeout(END_TIME):
            await process.wait()
    except (TimeoutError, asyncio.CancelledError) as error:
        with contextlib.suppress(ProcessLookupError):
            process.kill()  # its workers end with their sockets
        if isinstance(error, asyncio.CancelledError):
            raise
        await process.wait()
    finally:
        rest.cancel()
