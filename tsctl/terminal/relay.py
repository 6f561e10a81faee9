"""Run a process of our own beside a live line: the process's stderr appears above the line, not within it."""

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from tsctl.errors import CliError
from tsctl.render import LiveProgress

PATIENCE = 10.0  # seconds for the process to clean up after Ctrl-C: a worker within a request is killed after 5 s
DRAIN = 1.0  # seconds for the rest of its output: a process that it started may hold the pipe open


@contextmanager
def relayed(command: Sequence[str], progress: LiveProgress, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process within the block, and wait for its end.

    The process has a session of its own: Ctrl-C at the terminal reaches this one alone, which then interrupts the
    process, waits until its files are removed, and prints nothing more of its output. SIGTERM and SIGHUP do the same.

    Args:
        progress: where the lines of its stderr are shown.
        options: of `subprocess.Popen`, without `stderr`.
    """
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True, **options)
    quiet = threading.Event()
    reader = threading.Thread(target=_relay, args=(process.stderr, progress, quiet), daemon=True)
    reader.start()
    try:
        with raised_by_signals(lambda number: SystemExit(128 + number)):
            yield process
            process.wait()
            reader.join(DRAIN)
    except BaseException:
        quiet.set()
        progress.show("interrupted, removing temporary files")
        _end(process)
        raise
    finally:
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def events_of(
    command: Sequence[str], progress: LiveProgress, what: str, given: bytes | None = None
) -> Iterator[dict[str, Any]]:
    """Run a process that prints JSON lines, as `relayed`, and yield them.

    Its last, `failed` or `done`, comes when the process has ended and all that it printed is shown.

    Args:
        what: the process, for the error's message.
        given: its whole input; None for that of this process.

    Raises:
        CliError: the process ended otherwise than by a result or a failure.
    """
    stdin = None if given is None else subprocess.PIPE
    with relayed(command, progress, stdin=stdin, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # the process has ended; its exit code gives the reason
                process.stdin.write(given or b"")
            with contextlib.suppress(BrokenPipeError):  # what is left of that is tried once more
                process.stdin.close()
        last = None
        for line in process.stdout:
            event = json.loads(line)
            if event.get("stage") in ("failed", "done"):
                last = event
            else:
                yield event
    if last is not None:
        yield last
    elif process.returncode not in (0, 1):
        raise CliError(f"{what} ended with exit code {process.returncode}")


@contextmanager
def raised_by_signals(error: Callable[[int], BaseException]) -> Iterator[None]:
    """Raise an error on SIGTERM and SIGHUP within the block; of itself, neither would let it clean up."""

    def end(number: int, _frame: object) -> None:
        raise error(number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _relay(stream: IO[bytes] | None, progress: LiveProgress, quiet: threading.Event) -> None:
    assert stream is not None
    with stream:
        for line in iter(stream.readline, b""):
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if not quiet.is_set():
                progress.print(text.rpartition("\r")[2])  # of a line that was drawn several times, its last state


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the process; kill the rest of its session afterwards, or at a second Ctrl-C."""
    try:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
