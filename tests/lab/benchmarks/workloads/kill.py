"""A kill: eight clients ask all the time, and the only worker gets SIGKILL."""

import os
import signal
import threading
import time
from dataclasses import dataclass, field

from tests.lab.benchmarks.models import Served
from tests.lab.benchmarks.peers.peer import Running
from tests.lab.benchmarks.reporting.results import Figures

CLIENTS = 8
QUIET = 1.0  # seconds of load before the kill
AFTER = 1.0  # seconds of load after the first good answer
PATIENCE = 10.0  # seconds after which a request hangs, and a server counts as never serving again
PAUSE = 0.05  # seconds that a client waits after it was refused


@dataclass(slots=True)
class Record:
    """One request: when it was sent and over, and how it ended: `good`, `failed` or `hanging`."""

    sent: float
    over: float
    how: str


@dataclass(slots=True)
class _Clients:
    running: Running
    served: Served
    records: list[Record] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def ask_until_over(self) -> None:
        body = self.served.body.read_bytes()
        while not self.over.is_set():
            sent = time.monotonic()
            how = self._ask(body)
            self.records.append(Record(sent, time.monotonic(), how))
            if how != "good":
                time.sleep(PAUSE)

    def _ask(self, body: bytes) -> str:
        try:
            answer = self.running.ask(body, PATIENCE)
        except OSError:
            return "failed"
        if answer.status == -1:
            return "hanging"
        return "good" if answer.status == 200 and self.served.right(answer.body) else "failed"


def run(running: Running, served: Served) -> Figures:
    """Kill the worker under load, and see what becomes of the clients.

    Raises:
        LookupError: no process looks like a worker.
    """
    clients = _Clients(running, served)
    threads = [threading.Thread(target=clients.ask_until_over) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(QUIET)
        worker = running.worker
        killed = time.monotonic()
        os.kill(worker, signal.SIGKILL)
        while time.monotonic() < killed + PATIENCE and again_after(clients.records, killed) is None:
            time.sleep(0.02)
        time.sleep(AFTER)
    finally:
        clients.over.set()
        for thread in threads:
            thread.join()
    return judge(clients.records, killed)


def again_after(records: list[Record], killed: float) -> float | None:
    """Seconds from the kill to the first good answer to a request that was sent after it."""
    return min((r.over - killed for r in list(records) if r.sent > killed and r.how == "good"), default=None)


def judge(records: list[Record], killed: float) -> Figures:
    """Count what became of the requests.

    Returns:
        `lost`: in the server when the worker was killed, and failed; `refused`: sent later, and
        failed; `hanging`: never answered; `again`: see `again_after`, infinite for never.
    """
    affected = [record for record in records if record.over > killed]
    again = again_after(records, killed)
    return {
        "lost": sum(record.how == "failed" and record.sent <= killed for record in affected),
        "refused": sum(record.how == "failed" and record.sent > killed for record in affected),
        "hanging": sum(record.how == "hanging" for record in affected),
        "again": float("inf") if again is None else again,
    }
