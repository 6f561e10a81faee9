"""The worker's loop: `python -m tests.lab.benchmarks.layers.worker`. A real one, with a constant handler."""

import os
import socket
import sys
import tempfile
import time
from pathlib import Path

from tests.lab.benchmarks.layers.frames import predict
from tests.lab.benchmarks.layers.timing import table
from tests.lab.benchmarks.measuring.processes import parse_stat
from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader

BUDGET = 12.0
BATCH = 8
SECONDS = 1.5
RUNS = 3
HANDLER = b"def handle(data, context):\n    return None if data is None else [b'ok'] * len(data)\n"


class Worker:
    """A worker process, as the daemon starts one."""

    def __init__(self, folder: Path) -> None:
        (folder / "handler.py").write_bytes(HANDLER)
        self._sock, theirs = socket.socketpair()
        os.set_inheritable(theirs.fileno(), True)
        command = [sys.executable, "-P", "-m", "tsctl.handlers.worker", str(theirs.fileno()), str(os.getpid())]
        quiet = os.open(os.devnull, os.O_RDWR)
        self.pid = os.posix_spawn(
            sys.executable, command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, quiet, fd) for fd in (0, 1)]
        )
        os.close(quiet)
        theirs.close()
        self._reader = FrameReader()
        self.receive()
        model = {"modelName": "m", "handler": "handler.py"}
        load = wire.Load(
            model_name="m", model_version="1.0", model_dir=str(folder), handler="handler.py",
            manifest={"model": model}, batch_size=BATCH, threads=1,
        )  # fmt: skip
        self._sock.sendall(wire.encode(load))
        assert isinstance(self.receive(), wire.Loaded)

    def receive(self) -> wire.ToDaemon:
        while True:
            for frame in self._reader.feed(self._sock.recv(1 << 20)):
                message: wire.ToDaemon = wire.decode_for_daemon(frame)
                return message

    def run(self, frame: bytes, seconds: float) -> float:
        """Send batch after batch; microseconds of processor time that a request cost the worker."""
        before, batches, began = self._cpu(), 0, time.monotonic()
        while time.monotonic() < began + seconds:
            self._sock.sendall(frame)
            answer = self.receive()
            batches += 1
            assert isinstance(answer, wire.Done) and len(answer.answers) == BATCH
        return (self._cpu() - before) / batches / BATCH * 1e6

    def _cpu(self) -> float:
        return parse_stat(Path(f"/proc/{self.pid}/stat").read_text()).cpu

    def close(self) -> None:
        self._sock.close()
        os.waitpid(self.pid, 0)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(Path(folder))
        rows = []
        for size in (100, 10_000, 100_000):
            frame = bytes(wire.encode(predict(size)))
            what = f"a request of {size:,} B".replace(",", " ")
            rows.append((what, min(worker.run(frame, SECONDS) for _ in range(RUNS))))
        worker.close()
    table("Worker loop, in a batch of 8, with its system calls and frames", rows, BUDGET)


if __name__ == "__main__":
    main()
