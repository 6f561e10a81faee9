"""Requests that run on their own, and sequences, in the storm: `tokens` streams by continuous batching, `talks` is a
coroutine, `counter` keeps sums of sequences.

Some clients leave in the middle. Every request must be answered with its own pieces, whole and in order, or with an
error that a killed worker explains; no sum may be another one than its client's.
"""

import contextlib
import os
import random
import signal
import time
from collections.abc import Mapping

from tests.e2e.served import Served
from tests.lab.harness.crowd import Crowd
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.peer import Peer, Unanswered
from tests.lab.harness.verdict import Broken

CONFIGS = {
    "tokens": "minWorkers: 2\nmaxWorkers: 2\nbatchSize: 8\ncontinuousBatching: true\n",
    "talks": "minWorkers: 2\nmaxWorkers: 2\nasyncCommunication: true\n",
    "counter": (
        "minWorkers: 2\nmaxWorkers: 2\nbatchSize: 4\nsequenceBatching: true\nmaxNumSequence: 100\n"
        "maxSequenceJobQueueSize: 100\n"
    ),
}
CLIENTS = 2  # of each model
WORKERS = 2  # of each
PAUSE = 0.01  # seconds before a request
KILLED = (500, 503, 507)  # the statuses of a request whose worker was killed, or that found none
ANEW = "counter began anew, unasked"  # once for each client that has answers before and after an upgrade
CUT, LEFT, NONE = 0, -1, -2  # instead of a status: the answer was cut, its client left, nothing came


class Rows(Crowd):
    """The clients of each model, and whoever kills its workers."""

    def __init__(self, served: Served, ledger: Ledger, seed: str) -> None:
        super().__init__(ledger, seed)
        self._served = served
        self._address = served.url.removeprefix("http://")
        for work in (*[self._tokens] * CLIENTS, *[self._talks] * CLIENTS, *[self._counter] * CLIENTS, self._kill):
            self.add(work)

    def _kill(self, chance: random.Random) -> None:
        while not self.over.wait(0.5):
            model = chance.choice(list(CONFIGS))
            found = self._served.describe(model)
            if found["tsctl"]["state"] == "failed":  # five workers were killed before any had work
                self.ledger.count(f"{model} had given up, and was told to try again")
                self._served.command("POST", f"/models/{model}/1.0/retry?synchronous=false")
                continue
            pids = [worker["pid"] for worker in found["workers"] if worker["pid"]]
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(chance.choice(pids), signal.SIGKILL)
                self.ledger.count("workers killed")

    def _tokens(self, chance: random.Random) -> None:
        while not self.over.wait(PAUSE):
            count = chance.choice((1, 3, 20, 200))
            status, body = self._ask("tokens", f"{count}", leaves=count > 3 and chance.random() < 0.2)
            numbers = [piece.split("/")[0] for piece in body.split()]
            right = [f"{number}" for number in range(1, count + 1)]
            self._judge("tokens", status, body, whole=numbers == right, part=numbers == right[: len(numbers)])

    def _talks(self, chance: random.Random) -> None:
        while not self.over.wait(PAUSE):
            pause = f"{chance.choice((0.0, 0.01, 0.2)):g}"
            pieces = chance.choice((0, 0, 5))
            leaves = pause == "0.2" and chance.random() < 0.3
            status, body = self._ask("talks", f"{pause} {pieces}" if pieces else pause, leaves=leaves)
            right = "".join(f"{number} " for number in range(pieces)) + f"after {pause}"
            self._judge("talks", status, body, whole=body == right, part=right.startswith(body))

    def _counter(self, chance: random.Random) -> None:
        name, total, start, known, worker = f"{chance.random()}", 0, False, True, ""
        while not self.over.wait(PAUSE):
            number = chance.randrange(100)
            headers = {"ts_request_sequence_id": name} | ({"ts_request_sequence_start": "true"} if start else {})
            status, body = self._ask("counter", f"{number}", headers)
            if status == 409:
                self.ledger.count("counter told that its state is lost")
                start, known, total = True, True, 0
                continue
            if status == 200:
                told, _, pid = body.partition(" ")
                if not start and pid != worker and told == f"{number}":
                    self.ledger.count(ANEW)
                    start = known = True
                total = number if start else total + number
                start, worker = False, pid
                if known and told != f"{total}":
                    self.ledger.broken.append(f"counter: a sum of {total} was told as {body!r}")
                if not known:
                    self.ledger.broken.append(
                        f"counter: {body!r} was told after an error that should have ended the sequence"
                    )
            elif status in KILLED:
                known = start  # an error of a worker that ran it: the state is lost
            self._judge("counter", status, body, whole=status == 200, part=False)

    def _judge(self, model: str, status: int, body: str, *, whole: bool, part: bool) -> None:
        if status == 200 and whole:
            self.ledger.count(f"{model} right")
        elif status in (CUT, LEFT) and part:
            self.ledger.count(f"{model} {'left' if status == LEFT else 'cut'}")
        elif status in KILLED:
            self.ledger.count(f"{model} told that its worker was killed")
        elif status != NONE:
            self.ledger.broken.append(f"{model}: answered {status} {body[:200]!r}")

    def _ask(
        self, model: str, body: str, headers: Mapping[str, str] | None = None, *, leaves: bool = False
    ) -> tuple[int, str]:
        """Return status and body."""
        fields = {"Host": "chaos", "Content-Type": "text/plain", "Content-Length": len(body), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        try:
            with contextlib.closing(Peer(self._address)) as peer:
                peer.send(model, f"POST /predictions/{model} HTTP/1.1\r\n{head}\r\n{body}".encode())
                if leaves:
                    time.sleep(0.01)
                    return LEFT, ""
                told = peer.answer()
                return told.status if told.whole else CUT, told.body.decode()
        except Unanswered as error:
            self.ledger.unanswered.append(f"{model}: {body!r}: {error}")
        except Broken as error:
            self.ledger.broken.append(f"{model}: {body!r}: {error}")
        return NONE, ""


def register(served: Served) -> None:
    for model, config in CONFIGS.items():
        file = served.folder / f"{model}.yaml"
        file.write_text(config)
        served.register(model, config_file=file)


def become_calm(served: Served) -> None:
    """Let each model that has given up try again."""
    for model in CONFIGS:
        if served.describe(model)["tsctl"]["state"] == "failed":
            served.command("POST", f"/models/{model}/1.0/retry")


def left_over(served: Served, ledger: Ledger) -> list[str]:
    """Name what is left in the queues, and count the sequences that no upgrade has ended; a client begins with one."""
    waiting = {model: served.describe(model)["jobQueueStatus"]["pendingRequests"] for model in CONFIGS}
    wrong = [f"{model}: {count} requests are left in the queue" for model, count in waiting.items() if count]
    most = CLIENTS * (2 + ledger.done["daemon upgraded"])
    return wrong if ledger.done[ANEW] <= most else [*wrong, f"{ledger.done[ANEW]} sequences {ANEW}, of at most {most}"]
