"""A real daemon for a test: its own socket, state directory, model store and port."""

import contextlib
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from tests.e2e import forked
from tsctl.daemon.marfile import Packing, write_archive

TSCTL = Path(sys.executable).parent / "tsctl"
ARCHIVES = Path(__file__).parent / "archives"
# Seconds that anything may take before a test gives up. Nothing waits so long that works: on a machine with eight times
# as much to do as it can, importing torch takes 40 s.
PATIENCE = 60.0
PAGE = 600.0  # seconds for all commands of a page: some train a model
# torch names its own folder for compiled models, in the environment of a process that has compiled one: of a daemon
# that is started after such a test, models would be kept there.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
ADDRESS = "$(tsctl status --json | grep -o 'http://[^\"]*' | head -n 1)"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @classmethod
    def to(cls, connection: http.client.HTTPConnection) -> Self:
        """Read the answer to what was sent over a connection."""
        with connection.getresponse() as response:
            return cls(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """The command line and the addresses of one daemon."""

    made: ClassVar[list["Served"]] = []  # in this run of the tests
    forks = False  # whether `tsctl`, and the daemon that it starts, may be forks: see forked.py; conftest.py says so

    def __init__(self, folder: Path) -> None:
        self.made.append(self)
        self._read: dict[int, int] = {}  # inode of a log → bytes in which `new_tracebacks` has looked
        self.folder = folder
        self.store = folder / "store"
        self.store.mkdir()
        self.environment = ENVIRONMENT | {
            "TSCTL_SOCKET": str(folder / "control.sock"),
            "TSCTL_STATE_DIR": str(folder / "state"),
            "TSCTL_MODEL_STORE": str(self.store),
            "TSCTL_INFERENCE_ADDRESS": "127.0.0.1:0",
            "TSCTL_TEMPLATE": "false",  # most workers here need no torch, and its import takes seconds
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }
        self.patience = PATIENCE
        self._address = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def run(self, *arguments: str, patience: float = PATIENCE, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `tsctl` as a script would: its output is captured."""
        if self.forks and not options:
            parent = forked.parent(tuple(sorted(forked.early(self.environment).items())))
            return parent.run(arguments, self.environment, self.folder, patience)
        return subprocess.run(
            [TSCTL, *arguments],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=patience,
            **options,
        )

    def tsctl(self, *arguments: str) -> str:
        """Run `tsctl`, which must succeed; give its stdout."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *options: str) -> None:
        self.tsctl("start", *options)
        self.note_address()

    def note_address(self) -> None:
        self._address = self.status["inferenceAddress"].removeprefix("http://")

    def stop(self) -> None:
        """Stop the daemon if it runs, however the test left it."""
        try:
            pid = self.status["pid"]
            process = os.pidfd_open(pid)
        except OSError:
            return  # nobody listens, or it has just gone
        with open(process) as ended:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(process, number)
                if select.select([ended], [], [], PATIENCE)[0]:
                    return

    def new_tracebacks(self) -> list[str]:
        """Return what the daemon's own logs have, from each new traceback on."""
        found = []
        logs = Path(self.environment["TSCTL_STATE_DIR"]) / "logs"
        for path in (*logs.glob("daemon.log*"), *logs.glob("start.log*")):
            number, text = path.stat().st_ino, path.read_bytes()
            new = text[self._read.get(number, 0) :]
            self._read[number] = len(text)
            if b"Traceback (most recent call last)" in new:
                start = new.index(b"Traceback (most recent call last)")
                found.append(f"{path}: …{new[max(0, start - 500) :][:5000].decode(errors='replace')}")
        return found

    @property
    def status(self) -> Any:
        """The output of `tsctl status --json`, without the 0.15 s of processor time that its process takes."""
        return self._document("/tsctl/status")

    @property
    def pid(self) -> int:
        return int((self.folder / "control.pid").read_text())

    def kill(self) -> None:
        """Kill the daemon, and wait for its end."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not running(pid), "the daemon is killed")

    def log(self, name: str = "daemon.log") -> str:
        """Return the text of a log; empty while there is none."""
        file = self.folder / "state" / "logs" / name
        return file.read_text("utf-8") if file.exists() else ""

    def describe(self, model: str) -> Any:
        """The describe document of one version: the first that `tsctl describe` prints."""
        return self._document(f"/models/{model}")[0]

    def pids(self, model: str) -> list[int]:
        """Return the ids of the workers that are ready."""
        return [worker["pid"] for worker in self.describe(model)["workers"] if worker["status"] == "READY"]

    def _document(self, target: str) -> Any:
        answer = self.command("GET", target)
        assert answer.status == 200, answer.body
        return answer.json

    def pack(self, handler: str, name: str = "", version: str = "1.0", **further: Any) -> str:
        """Put an archive of a handler of tests/e2e/archives into the store; give its file name."""
        return self._pack(str(ARCHIVES / f"{handler}.py"), name or handler, version, **further)

    def _pack(self, handler: str, name: str, version: str = "1.0", *, config: str = "", **further: Any) -> str:
        """Do so with any handler; `config` is the text of model-config.yaml."""
        if config:
            further["config_file"] = self.folder / "model-config.yaml"
            further["config_file"].write_text(config)
        packing = Packing(model_name=name, version=version, handler=handler, **further)
        return write_archive(packing, self.store, force=True).name

    def pack_told(self, told: str, name: str = "m", **packing: Any) -> str:
        """Put an archive into the store, as `TOLD.mar`, whose answers are this text (archives/tells.py)."""
        file = self.folder / "told.txt"
        file.write_text(told)
        archive = self.store / self.pack("tells", name, extra_files=str(file), **packing)
        return archive.rename(archive.with_name(f"{told}.mar")).name

    def register(self, handler: str, *options: str, **packing: Any) -> None:
        self.tsctl("register", self.pack(handler, **packing), *options)

    def pack_built_in(self, handler: str, name: str, **further: Any) -> str:
        """Put an archive with a built-in handler into the store; give its file name."""
        return self._pack(handler, name, **further)

    def register_built_in(self, handler: str, name: str, *options: str, **packing: Any) -> None:
        self.tsctl("register", self.pack_built_in(handler, name, **packing), *options)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._address, timeout=self.patience)

    @property
    def url(self) -> str:
        return f"http://{self._address}"

    @property
    def port(self) -> int:
        return int(self._address.rpartition(":")[2])

    def ask(self, target: str, body: bytes | None = None, method: str = "POST", **headers: str) -> Answer:
        """Send one request to the inference address; `_` in a header's name stands for `-`."""
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
            return Answer.to(connection)

    def predict(self, model: str, value: Any, **headers: str) -> Answer:
        """Send a prediction whose body is JSON."""
        body = json.dumps(value).encode()
        return self.ask(f"/predictions/{model}", body, content_type="application/json", **headers)

    @property
    def metrics(self) -> str:
        return self.ask("/metrics", method="GET").body.decode()

    def command(self, method: str, target: str, body: bytes | None = None) -> Answer:
        """Send one request to the control socket."""
        connection = http.client.HTTPConnection("tsctl")
        with socket.socket(socket.AF_UNIX) as connection.sock, contextlib.closing(connection):
            connection.sock.settimeout(self.patience)
            connection.sock.connect(self.environment["TSCTL_SOCKET"])
            connection.request(method, target, body)
            return Answer.to(connection)


def typed(served: Served, commands: str, folder: Path, *unset: str) -> subprocess.CompletedProcess[str]:
    """Run the commands of a page in bash, which stops at the first that fails.

    Only the port differs from what a user types: 8080 may be taken on the machine that runs this.

    Args:
        unset: variables of the daemon's environment that the commands, or users, do without.
    """
    environment = served.environment | {"PATH": f"{TSCTL.parent}:{served.environment['PATH']}"}
    for name in unset:
        del environment[name]
    return subprocess.run(
        ["bash", "-e", "-u", "-o", "pipefail", "-c", commands.replace("http://127.0.0.1:8080", ADDRESS)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PAGE,
    )


def eventually(condition: Callable[[], bool], what: str | Callable[[], str], patience: float = PATIENCE) -> None:
    """Wait for another process to do something.

    Args:
        what: the text of what is waited for, or what returns it when the wait is over.
    """
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"it never happened: {what() if callable(what) else what}"
        time.sleep(0.02)


def processes_of(served: Served) -> Iterator[Path]:
    """Yield the folders in /proc of the processes whose environment names the daemon's folder."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if str(served.folder).encode() in (process / "environ").read_bytes():
                yield process


def raise_priority(served: Served) -> bool:
    """Give the usual priority to a daemon's processes that run only where no other wants the core; whether any did.

    Beside tests that keep all cores busy they get none. To be called again and again, as a process may start more.
    """
    raised = False
    for process in processes_of(served):
        with contextlib.suppress(OSError):
            for thread in (int(each.name) for each in (process / "task").iterdir()):
                if os.sched_getscheduler(thread) == os.SCHED_IDLE:
                    os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
                    raised = True
            (process / "autogroup").write_text("0")
    return raised


def accepts(port: int) -> bool:
    """Return whether a port of this machine accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except ConnectionRefusedError:
        return False
    return True


def free_port() -> int:
    """Return a port on which nobody listens: a program that is started again has to have the same one."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return int(chosen.getsockname()[1])


def free_address() -> str:
    return f"127.0.0.1:{free_port()}"


def running(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
