"""A real systemd for a test: process 1 of namespaces of its own, on a view of this machine that cannot change it.

All writes go to memory: the root is an overlay; /tmp, /run and /srv are empty; the kernel's settings are read-only.
The network is this machine's, so that a test asks a service at 127.0.0.1. Needs root, and Debian's `systemd`.
"""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.e2e.served import PATIENCE, TSCTL, eventually
from tsctl.daemon.core.machine.cgroups import own_directory

ROOT = Path(__file__).parents[2]
PROGRAM = Path("/lib/systemd/systemd")
# A systemd empties /tmp and writes sysctls when it boots: nothing of this machine may be left within its reach.
_BOOT = """
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root
cd /mnt/root
for each in $ELSEWHERE; do mkdir -p "./$each"; mount -o bind,ro "$each" "./$each"; done
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
set -- null 1 3 zero 1 5 full 1 7 random 1 8 urandom 1 9 tty 5 0
while [ $# -gt 0 ]; do mknod -m 666 "dev/$1" c "$2" "$3"; shift 3; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for each in run srv etc/systemd/system; do mount -t tmpfs -o mode=755 tmpfs "$each"; done
for each in tmp var/tmp; do mount -t tmpfs -o mode=1777 tmpfs "$each"; done
pivot_root . mnt
cd /
umount -l /mnt
test "$(stat -f -c %T /)$(stat -f -c %T /tmp)" = overlayfstmpfs
for each in $CLOSED; do chmod 755 "$each"; done
printf '[Unit]\\nDescription=A test\\nDefaultDependencies=no\\n' > /etc/systemd/system/test.target
export container=test
exec setpriv --bounding-set -sys_time,-sys_module,-sys_boot,-sys_rawio,-syslog $PROCESS_1
"""


def missing() -> str:
    """Return what a systemd of our own lacks here; empty if nothing."""
    if os.getuid() != 0:
        return "root"
    programs = [name for name in ("unshare", "nsenter", "setpriv", "systemctl") if shutil.which(name) is None]
    if programs or not PROGRAM.exists():
        return f"the programs {', '.join([*programs, str(PROGRAM)])}"
    if own_directory() is None:
        return "cgroup v2"
    tried = subprocess.run(["unshare", "--pid", "--fork", "--mount", "--cgroup", "true"], check=False)
    return "" if tried.returncode == 0 else "the right to make namespaces"


class Systemd:
    """A running systemd."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def run(self, *command: str, check: bool = True, environment: dict[str, str] | None = None) -> str:
        """Run a command within, as root of the whole; return its output, stderr after stdout."""
        entered = ["nsenter", "-t", str(self.pid), "-m", "-p", "-C", "-u", "-i", *command]
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("TSCTL_", "XDG_"))}
        done = subprocess.run(
            entered,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=clean | (environment or {}),
            cwd="/",
            check=False,
        )
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def tsctl(self, *arguments: str, socket: str = "") -> str:
        return self.run(str(TSCTL), *arguments, environment={"TSCTL_SOCKET": socket} if socket else {})

    def show(self, unit: str, name: str) -> str:
        """Return a property of a unit."""
        return self.run("systemctl", "show", unit, f"--property={name}", "--value").strip()

    def file(self, path: str) -> Path:
        """Return a file within, as seen from here."""
        return Path(f"/proc/{self.pid}/root{path}")


def closed_homes(paths: Iterable[Path]) -> set[Path]:
    """Return the directories that another user could not enter on the way to the code: they are open in the view."""
    ways = {folder for path in paths for way in (path, path.resolve()) for folder in (way, *way.parents)}
    return {folder for folder in ways if not folder.stat().st_mode & stat.S_IXOTH}


@contextlib.contextmanager
def booted() -> Iterator[Systemd]:
    """Boot a systemd, and end all that runs in it."""
    hierarchy = own_directory()
    assert hierarchy is not None
    group = hierarchy / f"tsctl-test-{os.getpid()}"
    group.mkdir()
    code = (ROOT, Path(sys.base_prefix))
    environment = os.environ | {
        "ELSEWHERE": " ".join(str(path) for path in code if path.stat().st_dev != Path("/").stat().st_dev),
        "CLOSED": " ".join(map(str, closed_homes(code))),
        "PROCESS_1": f"{PROGRAM} --system --unit=test.target --show-status=no",
    }
    command = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount",
        "--cgroup",
        "--uts",
        "--ipc",
        "bash",
        "-c",
        _BOOT,
    ]
    process = subprocess.Popen(
        ["bash", "-c", f'echo $BASHPID > "{group}/cgroup.procs"; exec "$@"', "-", *command],
        env=environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

        def process_1() -> int:
            pids = children.read_text().split() if children.exists() else []
            return int(pids[0]) if pids else 0

        def runs() -> bool:
            assert process.poll() is None, "systemd did not start"
            return bool(process_1()) and Path(f"/proc/{process_1()}/root/run/systemd/private").exists()

        eventually(runs, "systemd runs")
        systemd = Systemd(process_1())
        systemd.run("systemctl", "is-system-running", "--wait", check=False)
        yield systemd
    finally:
        (group / "cgroup.kill").write_text("1")
        process.wait(PATIENCE)
        eventually(lambda: "populated 0" in (group / "cgroup.events").read_text(), "all processes have ended")
        for folder in sorted((path for path in (group, *group.rglob("*")) if path.is_dir()), reverse=True):
            folder.rmdir()
