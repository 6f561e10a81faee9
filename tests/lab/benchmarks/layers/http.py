"""HTTP alone: `python -m tests.lab.benchmarks.layers.http`. Bytes in, an answer at once, bytes out."""

import itertools
import tempfile
from pathlib import Path

from tests.lab.benchmarks.layers.stack import Connections, access_log, post
from tests.lab.benchmarks.layers.timing import microseconds, table
from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Request, Response, new_request_id

BUDGET = 9.0
CONNECTIONS = 32


def answer(exchange: Exchange) -> None:
    exchange.respond(Response(200, b"100"))


def request_cost(size: int, folder: Path | None = None, storage: Arena | None = None, models: int = 1) -> float:
    """Read a request with a body of `size`, answer it; with a folder, write the access log there.

    Args:
        storage: where large bodies are received.
        models: asked in turn. If there is one, its head is known after the first request.
    """
    clock = FakeClock()
    log = None if folder is None else access_log(folder, clock)
    connections = Connections(answer, clock, CONNECTIONS, None if log is None else log.note, storage)
    requests = itertools.cycle([post(f"model-{number}", size) for number in range(models)])
    connections.send(next(requests))
    connections.check()
    return microseconds(lambda: connections.send(next(requests)), CONNECTIONS)


def main() -> None:
    response, request = Response(200, b"100"), Request("POST", "/predictions/m", [], id="x")
    head = microseconds(lambda: response.head(request.id, keep_alive=True), 1)
    made = microseconds(new_request_id, 1)
    with tempfile.TemporaryDirectory() as folder:
        table(
            "HTTP: parse and answer",
            [
                ("a request of 100 B, with the access log", request_cost(100, Path(folder))),
                ("a request of 100 B, without it", request_cost(100)),
                ("a request of 100 B, whose head is parsed", request_cost(100, models=2)),
                ("a request of 100 kB, without it", request_cost(100_000)),
                ("a request of 100 kB, into the arena", request_cost(100_000, storage=Arena(64 * 2**20))),
                ("of which: the head of the answer", head),
                ("of which: a request id", made),
            ],
            BUDGET,
        )


if __name__ == "__main__":
    main()
