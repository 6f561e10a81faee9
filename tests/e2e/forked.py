"""Runs `tsctl` in forks of a process that has imported it, and the daemon: an interpreter that starts takes longer.

The command line, and a daemon that it starts in the background, take 0.1 and 0.8 s of processor time to import their
modules, and most tests run several. Everything else is as where they are executed: arguments, environment, folder,
descriptors, exit code. The tests of starting, and the pages' and the examples' commands, execute them.

    python -m tests.e2e.forked CONTROL    the process that is forked; CONTROL is its end of a socket
"""

import atexit
import contextlib
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
# Variables that an interpreter, or a module that is imported, reads at its start.
EARLY = ("PYTHON", "LC_", "LANG", "NO_COLOR", "COLUMNS", "LINES", "TERM", "FORCE_COLOR", "GRPC_")
# What a daemon, or `tsctl`, imports while it runs, and nothing that only some of them need.
IMPORTED = (
    "tsctl.daemon.__main__", "tsctl.daemon.lifecycle.activation", "tsctl.daemon.lifecycle.first_template",
    "tsctl.daemon.lifecycle.notify", "tsctl.daemon.lifecycle.upgrade.shim",
    "tsctl.daemon.lifecycle.upgrade.successor", "tsctl.daemon.server.daemon", "uvloop", "rich.table", "tsctl.client",
    "tsctl.terminal.suggestions",
)  # fmt: skip


class Parent:
    """The process that is forked, seen from the tests.

    Args:
        environment: what its forks read of it at their start is theirs.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.e2e.forked", str(theirs.fileno())],
                stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environment, cwd=ROOT, start_new_session=True,
            )  # fmt: skip

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, patience: float
    ) -> subprocess.CompletedProcess[str]:
        """Run `tsctl` with these arguments, and capture its output.

        Raises:
            subprocess.TimeoutExpired: it takes longer than `patience`, in seconds.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, ours:
            with theirs:
                asked = json.dumps([[*arguments], {**environment}, str(folder)]).encode()
                socket.send_fds(self._control, [asked], [output.fileno(), errors.fileno(), theirs.fileno()])
            ours.settimeout(patience)
            pid = int(ours.recv(20))
            try:
                code = int(ours.recv(20))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(["tsctl", *arguments], patience, read(output), read(errors)) from None
            return subprocess.CompletedProcess(
                ["tsctl", *arguments], code, read(output).decode(), read(errors).decode()
            )

    def end(self) -> None:
        self._control.close()
        self._process.wait()


def early(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(EARLY)}


def read(file: Any) -> bytes:
    file.seek(0)
    return bytes(file.read())


@cache
def parent(early_environment: tuple[tuple[str, str], ...]) -> Parent:
    """Start the parent of this run of the tests for processes with these variables; it ends with the run."""
    made = Parent(os.environ | dict(early_environment))
    atexit.register(made.end)
    return made


class Background:
    """A daemon in a fork: what tsctl/starting.py needs of `subprocess.Popen`."""

    def __init__(
        self, command: Sequence[str], *, stdin: int, stdout: int, stderr: int, pass_fds: Sequence[int], **_: Any
    ) -> None:
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            _move({0: os.open(os.devnull, os.O_RDONLY), 1: stdout, 2: stderr}, keep=pass_fds)
            from tsctl.daemon.__main__ import main as run

            _finish(lambda: run(command[command.index("tsctl.daemon") + 1 :]))

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _finish(run: Callable[[], object]) -> NoReturn:
    """Run a program, and end the process with its exit code.

    Python's own way to the end takes apart all that was imported, which takes longer than most commands.
    """
    code: object = 1
    try:
        code = run()
    except SystemExit as error:
        code = error.code
    except BaseException:  # noqa: BLE001 - as the interpreter does
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


def _move(places: dict[int, int], keep: Sequence[int] = ()) -> None:
    """Put descriptors in these places, for which none of them stands, and close all others, but those to keep."""
    for place, descriptor in places.items():
        os.dup2(descriptor, place)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in keep:
            with contextlib.suppress(OSError):  # one was the listing's own
                os.close(int(name))
    for place in keep:
        os.set_inheritable(place, True)


def _serve(control: socket.socket) -> list[str] | None:
    """Fork for each request until the tests end; in a fork, return what it was asked to run."""
    asking: dict[int, tuple[int, socket.socket]] = {}  # descriptor of a process → its id, and who waits for its end
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready in asking:
                pid, waits = asking.pop(ready)
                poll.unregister(ready)
                os.close(ready)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(BrokenPipeError):  # the test has given up
                    waits.send(b"%d" % code)
                waits.close()
                continue
            message, descriptors, *_ = socket.recv_fds(control, 1_000_000, 3)
            if not message:
                return None
            pid = os.fork()
            if pid == 0:
                arguments, environment, folder = json.loads(message)
                control.detach()
                for _, waits in asking.values():
                    waits.detach()
                output, errors, _ = descriptors
                _move({1: output, 2: errors})
                os.chdir(folder)
                os.environ.clear()
                os.environ.update(environment)
                return [*map(str, arguments)]
            output, errors, waiting = descriptors
            os.close(output)
            os.close(errors)
            waits = socket.socket(fileno=waiting)
            waits.send(b"%d" % pid)
            process = os.pidfd_open(pid)
            asking[process] = (pid, waits)
            poll.register(process, select.POLLIN)


def _import_all() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    for module in pkgutil.iter_modules(importlib.import_module("tsctl.commands").__path__, "tsctl.commands."):
        importlib.import_module(module.name)


def main(control: int) -> None:
    from tsctl import cli, starting

    _import_all()
    vars(starting)["subprocess"] = SimpleNamespace(Popen=Background, DEVNULL=subprocess.DEVNULL)
    arguments = _serve(socket.socket(fileno=control))
    if arguments is not None:
        _finish(lambda: cli.main(arguments, prog_name="tsctl"))


if __name__ == "__main__":
    main(int(sys.argv[1]))
