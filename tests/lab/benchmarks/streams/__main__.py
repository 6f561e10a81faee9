"""The cost of continuous batching: token streams of a served engine, beside the same engine in a loop without a server.

    python -m tests.lab streams, or python -m tests.lab.benchmarks.streams [--rounds 9] [--sources]

engine.py is the engine, a handler whose call takes 1 ms and makes a token for each active request, and the loop without
a server, which is a process of its own, too. Runs on the compiled modules of a wheel, which it builds first (minutes),
`--sources` on the sources. In each round both loops run, one after the other. Printed are medians. First tokens are
measured with cores that stay awake: of a burst's delay 0.5 to 1 ms were the wake-ups of halted virtual cores.
"""

import argparse
import os
import select
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from statistics import median

from tests.compiled import COMPILED, run_compiled
from tests.http.peer import responses
from tests.lab.benchmarks.bounds import daemon
from tests.lab.benchmarks.measuring.processes import used_by
from tests.lab.benchmarks.streams import engine
from tsctl.handlers.own_process import step_back

ROUNDS = 9
AWAKE = "awake"  # the first argument of a process that keeps a core awake
STREAMS = 32
LONG = 4000  # tokens of a stream whose rate is measured: its beginning and end are a thousandth of it
SHORT = 10  # tokens of a stream whose beginning is measured
TIMES = 40  # how often short streams begin in a round: 32 together, and one alone
APART = 0.013  # seconds between two of these, and a little more each time: at any moment of the daemon's
PAUSE = 0.005  # seconds between two looks for tokens
PATIENCE = 60.0  # seconds for all of a run
CONFIG = f"minWorkers: 1\nmaxWorkers: 1\nbatchSize: {STREAMS}\ncontinuousBatching: true\n"


class WrongAnswer(Exception):
    """A stream did not have its tokens."""


class Clients:
    """Connections to a daemon that stay open, all in one thread; each sends a request, and notes its first token.

    After the first tokens they look for more every few milliseconds, one read a connection: a client that is woken for
    each token takes as much of a core as the daemon, which it would not take from it on a machine of its own.
    """

    def __init__(self, port: int, count: int) -> None:
        self._sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
        self._epoll = select.epoll()
        for each in self._sockets:
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._epoll.register(each, select.EPOLLIN)
        self._by_number = {each.fileno(): index for index, each in enumerate(self._sockets)}

    def close(self) -> None:
        self._epoll.close()
        for each in self._sockets:
            each.close()

    def run(self, tokens: int) -> tuple[list[float], float]:
        """Ask on each connection for so many tokens; return the seconds to each first token, and those of all of it.

        Raises:
            WrongAnswer: not these tokens, in their order, came.
        """
        body, count = str(tokens), len(self._sockets)
        lines = ("POST /predictions/engine HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", "", body)
        came = [bytearray() for _ in range(count)]
        sent, firsts = [0.0] * count, [0.0] * count
        for index, each in enumerate(self._sockets):
            sent[index] = time.perf_counter()
            each.send("\r\n".join(lines).encode())
        missing, open_ = count, set(range(count))
        while open_:
            if time.perf_counter() - sent[0] > PATIENCE:
                raise WrongAnswer(f"{len(open_)} of {count} streams did not end within {PATIENCE:g} s")
            for index in self._readable(open_, wait=missing > 0):
                data = came[index]
                try:
                    data += self._sockets[index].recv(1 << 18)
                except BlockingIOError:
                    continue
                if not firsts[index] and not data.endswith(b"\r\n\r\n"):  # more than the head
                    firsts[index] = time.perf_counter() - sent[index]
                    missing -= 1
                if data.endswith(b"0\r\n\r\n"):
                    open_.discard(index)
        seconds = time.perf_counter() - sent[0]
        right = [f"{number} " for number in range(1, tokens + 1)]
        for data in came:
            if tokens_of(bytes(data)) != right:
                raise WrongAnswer(f"expected {tokens} tokens in order, got {bytes(data)!r:.500}")
        return firsts, seconds

    def _readable(self, open_: set[int], *, wait: bool) -> list[int]:
        if wait:
            return [self._by_number[number] for number, _ in self._epoll.poll(1.0)]
        time.sleep(PAUSE)
        return sorted(open_)


def tokens_of(data: bytes) -> list[str]:
    """Return the chunks of an answer; none if it is not 200."""
    answer, tokens = next(responses(data)), list[str]()
    while answer.status == 200 and (token := answer.read1()):
        tokens.append(token.decode())
    return tokens


# What was measured, by round: `bare` and `served` are tokens a second of each loop; `first …` the seconds to the first
# token, of 32 streams that begin together, and of one; `cpu …` the seconds on a core of each process for a step.
Measured = defaultdict[str, list[float]]


def bare_runs(tokens: int, times: int) -> list[tuple[float, float]]:
    """Run the loop without a server in a process of its own; return the seconds to first and last token, each time."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        runs = [process.submit(engine.run_bare, STREAMS, tokens, APART) for _ in range(times)]
        return [each.result() for each in runs]


@contextmanager
def cores_awake() -> Iterator[None]:
    """Keep all cores that this process may use awake while the block runs.

    A core that has nothing to do halts. A virtual one then gives its real one away: the wake-up takes a tenth of a
    millisecond, and the kernel takes such a core for one that is not there (vcpu_is_preempted), so that a daemon that a
    client has woken waits on that client's core. A request goes through three such wake-ups, each the machine's own.
    """
    with ExitStack() as stack:
        for core in os.sched_getaffinity(0):
            command = [sys.executable, "-m", "tests.lab.benchmarks.streams", AWAKE, str(core)]
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True))
            stack.callback(process.kill)
            assert process.stdout is not None and process.stdout.readline(), "it ended"
        yield


def stay_awake(core: int) -> None:
    """Compute on a core, with the lowest priority of all: whatever else there is to run has it at once."""
    parent = os.getppid()
    os.sched_setaffinity(0, {core})
    step_back()
    print(AWAKE, flush=True)
    while os.getppid() == parent:  # a parent that was killed cannot end this process
        for _ in range(100_000):
            pass


def first_tokens(clients: Clients) -> float:
    """Return the median of the seconds to the first token."""
    firsts: list[float] = []
    for number in range(TIMES):
        time.sleep(APART + number % 10 * 1e-4)
        firsts += clients.run(SHORT)[0]
    return median(firsts)


def measure_round(made: Measured, clients: Clients, alone: Clients, pids: dict[str, int]) -> None:
    made["bare"].append(STREAMS * LONG / bare_runs(LONG, 1)[0][1])
    clients.run(100)
    before = {name: used_by(pid) for name, pid in pids.items()}
    made["served"].append(STREAMS * LONG / clients.run(LONG)[1])
    for name, pid in pids.items():
        made[f"cpu {name}"].append((used_by(pid) - before[name]) / LONG)
    with cores_awake():
        made["first bare"].append(median(first for first, _ in bare_runs(SHORT, TIMES)))
        made["first of a burst of 32"].append(first_tokens(clients))
        made["first of a single request"].append(first_tokens(alone))


def measure(rounds: int) -> Measured:
    """Measure both loops in turns."""
    made = Measured(list)
    with daemon() as served:
        config = served.folder / "config.yaml"
        config.write_text(CONFIG)
        served.register(engine.__file__.removesuffix(".py"), name="engine", config_file=config)
        [worker] = served.describe("engine")["workers"]
        pids = {"worker": worker["pid"], "daemon": served.pid, "clients": os.getpid()}
        clients, alone = (Clients(served.port, count) for count in (STREAMS, 1))
        for _ in range(rounds):
            measure_round(made, clients, alone, pids)
        clients.close()
        alone.close()
    return made


def report(made: Measured) -> None:
    for title, name in (("without a server", "bare"), ("served", "served")):
        rate = median(made[name])
        print(f"{title:16} {rate:8.0f} tokens a second, {STREAMS / rate * 1e6:.0f} µs a step")
    ratios = sorted(ours / bare for bare, ours in zip(made["bare"], made["served"], strict=True))
    print(f"ratio {median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")
    bare = median(made["first bare"])
    for name in ("a burst of 32", "a single request"):
        first = median(made[f"first of {name}"])
        print(f"{name:16} {first * 1e3:.2f} ms to the first token, {(first - bare) * 1e3:.2f} ms later")
    for name in ("worker", "daemon", "clients"):
        print(f"{name:16} {median(made[f'cpu {name}']) * 1e6:.0f} µs on a core in each step")


def main(arguments: list[str]) -> int:
    if arguments[:1] == [AWAKE]:
        stay_awake(int(arguments[1]))
        return 0
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.streams", description="Token streams.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often both loops run ({ROUNDS})")
    parser.add_argument("--sources", action="store_true", help="run the sources, not the compiled modules")
    given = parser.parse_args(arguments)
    if not given.sources and COMPILED not in os.environ:
        return run_compiled("tests.lab.benchmarks.streams", arguments)
    report(measure(given.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
