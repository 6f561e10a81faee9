"""A real terminal of a given size: tmux, whose screen is read as a user sees it."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.e2e.served import PATIENCE, TSCTL, eventually


class Screen:
    """A bash in tmux, in a server of its own.

    Args:
        folder: the shell's directory; its parent holds the server's socket.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], *, columns: int = 80, rows: int = 24) -> None:
        program = shutil.which("tmux")
        if program is None:
            pytest.skip("needs the Debian program tmux")
        self._tmux = [program, "-S", str(folder / "tmux.sock"), "-f", "/dev/null"]
        self._environment = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")} | {
            "PATH": f"{TSCTL.parent}:{os.environ['PATH']}", "LANG": "C.UTF-8", "TERM": "xterm",
        }  # fmt: skip
        size = ["-x", str(columns), "-y", str(rows)]
        self._run("new-session", "-d", *size, "-c", str(folder), "bash --norc --noprofile")
        self._ends = 0
        self.type("PS1='> '; clear")
        self.wait(_prompted, "the first prompt")

    def type(self, line: str) -> None:
        """Type a line and press Enter."""
        self._run("send-keys", "-l", line)
        self._run("send-keys", "Enter")

    def press(self, key: str) -> None:
        """Press a key, such as `C-c`."""
        self._run("send-keys", key)

    def run(self, line: str) -> list[str]:
        """Clear the screen, run a line to its end, and return what stands on the screen below the line."""
        self.press("C-l")
        self._run("send-keys", "-l", line)
        last = line.split()[-1]
        # Otherwise the prompt before the line could be taken for the one after.
        self.wait(lambda lines: "".join(lines).endswith(last), f"`{last}` was typed")
        self.press("Enter")
        return self.ended()

    def ended(self) -> list[str]:
        """Wait for the prompt; return the lines between the command and the exit code, which is the last of them."""
        self.wait(_prompted, "the prompt is there again")
        self._ends += 1
        mark = f"ended-{self._ends}:"
        # Split, so that the line that is typed is not what is waited for.
        self.type(f"echo {mark[:3]}''{mark[3:]}$?")
        self.wait(lambda lines: any(line.startswith(mark) for line in lines), mark)
        lines = self.lines()
        end = next(index for index, line in enumerate(lines) if line.startswith(mark))
        body = lines[: end - 1]  # the line before is the prompt with `echo`
        start = next((index for index, line in enumerate(body) if line.startswith("> ")), -1)
        return [*body[start + 1 :], lines[end].removeprefix(mark)]

    def wait(self, condition: Callable[[list[str]], bool], what: str) -> None:
        """Wait until the screen's lines fulfil a condition."""
        eventually(lambda: condition(self.lines()), lambda: "\n".join([f"{what}; the screen shows", *self.lines()]))

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal."""
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    def lines(self) -> list[str]:
        """Return the lines of the screen."""
        return [line.rstrip() for line in self._run("capture-pane", "-p").splitlines()]

    def close(self) -> None:
        self._call("kill-server")

    def _run(self, *arguments: str) -> str:
        done = self._call(*arguments)
        assert done.returncode == 0, f"{shlex.join(arguments)}: {done.stderr}"
        return done.stdout

    def _call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self._tmux, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=self._environment, timeout=PATIENCE)


def _prompted(lines: list[str]) -> bool:
    return next(filter(None, reversed(lines)), "") == ">"
