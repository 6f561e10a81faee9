"""HTTP alone: `python -m tests.lab.benchmarks.layers.http`. Bytes in, an answer at once, bytes out."""

import tempfile
from pathlib import Path

from daemon.core.clock import FakeClock
from daemon.http.exchange import Exchange
from daemon.http.messages import Request, Response, new_request_id
from tests.lab.benchmarks.layers.stack import Connections, access_log, post
from tests.lab.benchmarks.layers.timing import microseconds, table

BUDGET = 9.0
CONNECTIONS = 32


def answer(exchange: Exchange) -> None:
    exchange.respond(Response(200, b"100"))


def request_cost(size: int, folder: Path | None = None) -> float:
    """Parse a request with a body of `size`, answer it; with a folder, write the access log there."""
    clock = FakeClock()
    log = None if folder is None else access_log(folder, clock)
    connections = Connections(answer, clock, CONNECTIONS, None if log is None else log.note)
    request = post("model-0", size)
    connections.send(request)
    connections.check()
    return microseconds(lambda: connections.send(request), CONNECTIONS)


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
                ("a request of 100 kB, without it", request_cost(100_000)),
                ("of which: the head of the answer", head),
                ("of which: a request id", made),
            ],
            BUDGET,
        )


if __name__ == "__main__":
    main()
