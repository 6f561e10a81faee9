"""A container's surroundings without a container runtime: namespaces of its own, as user 1000 without capabilities.

The process is process 1 of a PID namespace, has a loopback interface of its own, so that its ports are free, a
read-only root with an empty /tmp, and the folders that are mounted for it. Needs root, and Linux's unshare(1).
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from tests.e2e.served import PATIENCE, eventually

USER = 1000
_HOLD = "/srv"  # a folder of every system, where sources are kept while mounts hide them
TOOLS = ("unshare", "nsenter", "setpriv", "mount", "ip")

ROOT = Path(__file__).parents[2]

_PROGRAM = """
exec setpriv --reuid {user} --regid {user} --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs \
  env -i "$@"
"""


def needs_container() -> None:
    """Skip the test where such surroundings cannot be made."""
    if os.getuid() != 0:
        pytest.skip("needs root: the container's user, network and mounts are made by unshare(1)")
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)} of util-linux and iproute2")
    made = subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no namespaces here: {made.stderr.strip()}")


class Container:
    """A process in such surroundings.

    Args:
        setup: lines of a shell, which end in one that becomes process 1 with `env -i` and the arguments.
        arguments: variables, and then the program and its words.
    """

    def __init__(self, folder: Path, setup: Sequence[str], arguments: Sequence[str]) -> None:
        script = "\n".join(["set -e", "ip link set lo up", *setup])
        self._log = folder / "container.log"
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "--propagation",
                 "private", "sh", "-c", script, "sh", *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
            )  # fmt: skip
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        eventually(lambda: children.read_text() != "", "process 1 was forked")
        self.pid = int(children.read_text())

    @classmethod
    def of_this_machine(
        cls, folder: Path, words: Sequence[str], environment: Mapping[str, str], mounts: Mapping[Path, Path]
    ) -> "Container":
        """Run the entry point with the files of this machine.

        Args:
            words: of the image's entry point.
            mounts: place in the container → folder of this machine, read-only there.
        """
        variables = [f"{name}={value}" for name, value in ({"PATH": os.environ["PATH"]} | dict(environment)).items()]
        program = [sys.executable, "-P", "-m", "tsctl.container", *words]
        return cls(folder, [*_mounting(mounts), _PROGRAM.format(user=USER)], [*variables, *program])

    @classmethod
    def of_an_image(
        cls, folder: Path, root: Path, image: Mapping[str, Any], words: Sequence[str], mounts: Mapping[Path, Path]
    ) -> "Container":
        """Run an image whose files are in a folder, as its configuration says, with a read-only root.

        Args:
            image: the configuration, with the members of the Open Container Initiative's: `Env`, `Entrypoint`, …
        """
        place = _quoted(root)
        lines = [f"mount --bind {place} {place}"]
        lines += [f"mount --rbind /{name} {place}/{name}" for name in ("dev", "sys")]
        lines += [
            f"mount --bind {_quoted(source)} {_quoted(root / at.relative_to('/'))}" for at, source in mounts.items()
        ]
        lines += [f"mount -t proc proc {place}/proc", f"mount -o remount,bind,ro {place}"]
        lines += [f"mount -t tmpfs -o mode=1777 scratch {place}/tmp"]
        lines += [f'exec chroot --userspec={image["User"]} {place} env -i "$@"']
        inside = ["sh", "-c", 'cd "$0" && exec "$@"', image["WorkingDir"]]
        return cls(folder, lines, [*image["Env"], *inside, *image["Entrypoint"], *(words or image["Cmd"])])

    @property
    def output(self) -> str:
        """What the process and its children printed."""
        return self._log.read_text()

    def run(self, *command: str | Path, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
        """Run a program on the network of the container, with the files of this machine."""
        inside = ["nsenter", "--target", str(self.pid), "--net", "--", *map(str, command)]
        return subprocess.run(inside, capture_output=True, text=True, timeout=timeout)

    def begin(self, *command: str) -> subprocess.Popen[str]:
        """Start a program on the network of the container."""
        inside = ["nsenter", "--target", str(self.pid), "--net", "--", *command]
        return subprocess.Popen(inside, stdout=subprocess.PIPE, text=True)

    def execute(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program in the container as its user, as `docker exec` does."""
        ids = ["--setuid", str(USER), "--setgid", str(USER)]
        inside = ["nsenter", "--target", str(self.pid), "--net", "--mount", "--pid", *ids, "--", *map(str, command)]
        return subprocess.run(inside, capture_output=True, text=True, timeout=PATIENCE, cwd="/")

    def execute_in(self, root: Path, image: Mapping[str, Any], *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of an image in its container, as `docker exec` does."""
        inside = ["nsenter", "--target", str(self.pid), "--net", "--mount", "--pid", "--"]
        program = ["chroot", f"--userspec={image['User']}", str(root), "env", "-i", *image["Env"], *command]
        return subprocess.run([*inside, *program], capture_output=True, text=True, timeout=PATIENCE, cwd="/")

    def get(self, url: str) -> tuple[int, str]:
        """Return the status and body of a URL; 0 if nobody listens."""
        done = self.run("curl", "--silent", "--write-out", "\n%{http_code}", url)
        body, _, status = done.stdout.rpartition("\n")
        return int(status), body

    def wait_until_ready(self) -> None:
        eventually(lambda: self._alive() and self.get("http://127.0.0.1:8080/ready")[0] == 200, "is ready")

    def stop(self) -> int:
        """Send SIGTERM to process 1, as a runtime does; return its exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait until process 1 ends; return its exit code."""
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        if self._process.poll() is None:
            # Process 1 outlives unshare(1): the signal at its end goes when the user changes.
            os.kill(self.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def _alive(self) -> bool:
        assert self._process.poll() is None, self.output
        return True


Contain = Callable[..., Container]  # words of the entry point, mounts, variables: the fixture `contain`


def _mounting(mounts: Mapping[Path, Path]) -> list[str]:
    """Return the lines that make the root read-only, /tmp empty, and mount the folders.

    The machine need not have the places: an empty folder is mounted at the top of each, with them in it. So the
    program's own folders are mounted again where a top hides them, or where a folder above them is closed to others.
    """
    places, tops = dict(mounts), {_top(place) for place in mounts} | {Path("/tmp")}
    libraries = Path(click.__file__).parents[1]  # in another environment, where the compiled wheel is tested
    for own in (ROOT, Path(sys.prefix), Path(sys.base_prefix).resolve(), libraries):
        closed = any(not parent.stat().st_mode & 0o001 for parent in own.parents)
        if (closed or _top(own) in tops) and not any(own.is_relative_to(place) for place in places):
            places[own] = own
            tops.add(_top(own))
    lines = [f"mount -t tmpfs -o mode=755 hold {_HOLD}"]
    for number, source in enumerate(places.values()):
        lines += [f"mkdir {_HOLD}/{number}", f"mount --bind {_quoted(source)} {_HOLD}/{number}"]
    lines += [f"mount -t tmpfs -o mode={'1777' if top == Path('/tmp') else '755'} top {_quoted(top)}" for top in tops]
    for number, place in enumerate(places):
        lines += [f"mkdir -p {_quoted(place)}", f"mount --bind {_HOLD}/{number} {_quoted(place)}"]
        lines += [f"mount -o remount,bind,ro {_quoted(place)}"]
    lines += [f"mount -o remount,bind,ro {_quoted(top)}" for top in tops - {Path("/tmp")}]
    return [*lines, f"umount --lazy {_HOLD}", "mount -o remount,bind,ro /"]


def _top(path: Path) -> Path:
    return Path(*path.parts[:2])


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
