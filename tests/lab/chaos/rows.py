"""`python -m tests.lab chaos-rows`: kill workers of requests on their own and of sequences.

    python -m tests.lab.chaos.rows [--seconds 600] [--seed N]

Three models: `tokens` streams by continuous batching, `talks` is a coroutine, `counter` keeps sums of sequences. A
worker is killed every 200 ms; some clients leave in the middle. Every request must be answered with its own pieces,
whole and in order, or with an error that a killed worker explains; no sum may be another one than its client's.
"""

import argparse
import contextlib
import http.client
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.e2e.served import Served

PATIENCE = 60.0  # seconds; a request without an answer after that is unanswered
CONFIGS = {
    "tokens": "minWorkers: 2\nmaxWorkers: 2\nbatchSize: 8\ncontinuousBatching: true\n",
    "talks": "minWorkers: 2\nmaxWorkers: 2\nasyncCommunication: true\n",
    "counter": (
        "minWorkers: 2\nmaxWorkers: 2\nbatchSize: 4\nsequenceBatching: true\nmaxNumSequence: 100\n"
        "maxSequenceJobQueueSize: 100\n"
    ),
}
KILLED = (500, 503, 507)  # the statuses of a request whose worker was killed, or that found none
CUT = (http.client.IncompleteRead, http.client.RemoteDisconnected, ConnectionResetError)


class Storm:
    """A daemon, its clients, and whoever kills its workers.

    Attributes:
        told: answers by model and kind.
        wrong: a sentence for each answer that must not be.
    """

    def __init__(self, served: Served, seed: int) -> None:
        self.told: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.kills = 0
        self._served = served
        self._seed = seed
        self._over = threading.Event()

    def run(self, seconds: float) -> None:
        """Let everybody loose for a while."""
        kinds: list[Callable[[random.Random], None]] = [*[self._tokens] * 6, *[self._talks] * 6, *[self._counter] * 6]
        threads = [
            threading.Thread(target=kind, args=(random.Random(f"{self._seed} {number}"),))
            for number, kind in enumerate([*kinds, self._kill])
        ]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self._over.set()
        for thread in threads:
            thread.join()

    def _kill(self, chance: random.Random) -> None:
        while not self._over.wait(0.2):
            model = chance.choice(list(CONFIGS))
            described = self._served.describe(model)
            if described["tsctl"]["state"] == "failed":  # five workers were killed before any had work
                self.told[f"{model} had given up, and was told to try again"] += 1
                self._served.command("POST", f"/models/{model}/1.0/retry?synchronous=false")
                continue
            pids = [worker["pid"] for worker in described["workers"] if worker["pid"]]
            if pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(pids), signal.SIGKILL)
                    self.kills += 1

    def _tokens(self, chance: random.Random) -> None:
        while not self._over.is_set():
            count = chance.choice((1, 3, 20, 200))
            leaves = count > 3 and chance.random() < 0.2
            status, body = self._ask("tokens", f"{count}", leaves=leaves)
            numbers = [piece.split("/")[0] for piece in body.split()]
            right = [f"{number}" for number in range(1, count + 1)]
            self._judge("tokens", status, body, whole=numbers == right, part=numbers == right[: len(numbers)])

    def _talks(self, chance: random.Random) -> None:
        while not self._over.is_set():
            pause = f"{chance.choice((0.0, 0.01, 0.2)):g}"
            pieces = chance.choice((0, 0, 5))
            leaves = pause == "0.2" and chance.random() < 0.3
            status, body = self._ask("talks", f"{pause} {pieces}" if pieces else pause, leaves=leaves)
            right = "".join(f"{number} " for number in range(pieces)) + f"after {pause}"
            self._judge("talks", status, body, whole=body == right, part=right.startswith(body))

    def _counter(self, chance: random.Random) -> None:
        name, total, start, known = f"{chance.random()}", 0, False, True
        while not self._over.is_set():
            number = chance.randrange(100)
            headers = {"ts_request_sequence_id": name}
            if start:
                headers["ts_request_sequence_start"] = "true"
            status, body = self._ask("counter", f"{number}", headers)
            if status == 409:
                self.told["counter told that its state is lost"] += 1
                start, known, total = True, True, 0
                continue
            if status == 200:
                total = number if start else total + number
                start = False
                if known and body.split()[0] != f"{total}":
                    self.wrong.append(f"counter: a sum of {total} was told as {body!r}")
                if not known:
                    self.wrong.append(f"counter: {body!r} was told after an error that should have ended the sequence")
            elif status in KILLED:
                known = start  # an error of a worker that ran it: the state is lost
            self._judge("counter", status, body, whole=status == 200, part=False)

    def _judge(self, model: str, status: int, body: str, *, whole: bool, part: bool) -> None:
        if status == 200 and whole:
            self.told[f"{model} right"] += 1
        elif status in (0, -1) and part:
            self.told[f"{model} {'left' if status else 'cut'}"] += 1
        elif status in KILLED:
            self.told[f"{model} told that its worker was killed"] += 1
        else:
            self.wrong.append(f"{model}: answered {status} {body[:200]!r}")

    def _ask(
        self, model: str, body: str, headers: dict[str, str] | None = None, *, leaves: bool = False
    ) -> tuple[int, str]:
        """Return status and body; 0 and what came for an answer that was cut, -1 for one that the client left."""
        connection = http.client.HTTPConnection(self._served.url.removeprefix("http://"), timeout=PATIENCE)
        came, begun = b"", False
        with contextlib.closing(connection):
            try:
                connection.request(
                    "POST", f"/predictions/{model}", body, {"Content-Type": "text/plain", **(headers or {})}
                )
                if leaves:
                    time.sleep(0.01)
                    return -1, ""
                response = connection.getresponse()
                begun = True
                while piece := response.read1():
                    came += piece
                return response.status, came.decode()
            except http.client.IncompleteRead as error:
                return 0, (came + error.partial).decode()
            except CUT as error:
                if not begun:
                    self.wrong.append(f"{model}: {body!r} was not answered: {type(error).__name__}")
                return 0, came.decode()
            except TimeoutError:
                self.wrong.append(f"{model}: {body!r} was not answered within {PATIENCE:g} s")
                return 0, ""


def storm(folder: Path, seconds: float, seed: int) -> Storm:
    """Run a storm against a daemon in this folder, which must be empty; return what was told."""
    served = Served(folder)
    served.start("--queue-jobs", "1000")
    try:
        for model, config in CONFIGS.items():
            file = folder / f"{model}.yaml"
            file.write_text(config)
            served.register(model, config_file=file)
        made = Storm(served, seed)
        made.run(seconds)
        for model in CONFIGS:
            queue = served.describe(model)["jobQueueStatus"]
            if queue["pendingRequests"]:
                made.wrong.append(f"{model}: {queue['pendingRequests']} requests are left in the queue")
    finally:
        served.stop()
    return made


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.chaos.rows", description="Kill workers of rows.")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long (600)")
    parser.add_argument("--seed", type=int, default=1, help="of what the clients send (1)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        made = storm(Path(folder), options.seconds, options.seed)
    for kind, count in sorted(made.told.items()):
        print(f"{count:8} {kind}")
    print(f"{made.kills:8} workers killed, {len(made.wrong)} answers wrong")
    for each in made.wrong[:20]:
        print(each)
    return 1 if made.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
