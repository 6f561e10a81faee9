"""The cost of an idle open connection: `python -m tests.lab.benchmarks.idle_connections`.

[--connections 10000]

Opens them on loopback from several addresses, and prints how many bytes of the daemon's memory each takes: as it was
accepted, and after one request with an answer, kept alive. The limit is 8 KiB. What the kernel keeps for a socket is
not the process's, and not counted.
"""

import argparse
import contextlib
import resource
import socket
import tempfile
from pathlib import Path

from tests.e2e.served import Served
from tests.lab.benchmarks.measuring.processes import pss_of_one

LIMIT = 8 * 1024
SOURCES = 20
REQUEST = (
    b"POST /predictions/nobody HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: benchmark/1.0\r\nAccept: */*\r\n"
    b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
)


def ask_all(connections: list[socket.socket]) -> None:
    for connection in connections:
        connection.sendall(REQUEST)
    for connection in connections:
        assert connection.recv(4096).startswith(b"HTTP/1.1 404 ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--connections", type=int, default=10_000)
    wanted = parser.parse_args().connections
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        served = Served(Path(folder))
        served.start("--keep-alive", "600")
        opened.callback(served.stop)
        pid, address = served.pid, ("127.0.0.1", int(served.url.rpartition(":")[2]))
        for _ in range(50):
            served.ask("/ping")  # what is made once is there
        idle = pss_of_one(pid)
        connections = [
            opened.enter_context(
                socket.create_connection(address, 30, source_address=(f"127.0.0.{2 + number % SOURCES}", 0))
            )
            for number in range(wanted)
        ]
        assert served.ask("/ping").status == 200  # all before it are accepted
        rows = [("accepted", pss_of_one(pid))]
        for count in (1, 2, 3):
            ask_all(connections)
            rows.append((f"after {count} requests", pss_of_one(pid)))
        print(f"{wanted} connections; the daemon has {idle / 2**20:.1f} MiB without them")
        for name, memory in rows:
            each = (memory - idle) / wanted
            print(f"{name:>18}: {each:7.0f} bytes each  {'within' if each < LIMIT else 'OVER'} {LIMIT}")


if __name__ == "__main__":
    main()
