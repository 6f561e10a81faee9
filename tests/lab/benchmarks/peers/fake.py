"""A server for the tests of the benchmarks: it needs nothing installed, and its worker can be killed.

`python fake.py PORT [replace]` serves with one child process; with `replace` a dead one is replaced.
"""

import http.server
import os
import socketserver
import sys
from pathlib import Path

from tests.lab.benchmarks.peers.peer import Peer, Running, Setup, free_port, spawn

ROOT = Path(__file__).parent.parent.parent.parent.parent


class Fake(Peer):
    """Args: `replace`: a worker that dies is replaced."""

    name = "fake"

    def __init__(self, *, replace: bool = True) -> None:
        self._replace = replace

    def install(self) -> str:
        return "1.0"

    def launch(self, setup: Setup) -> Running:
        port = free_port()
        command = [sys.executable, "-m", "tests.lab.benchmarks.peers.fake", str(port), *["replace"] * self._replace]
        process = spawn(command, setup.folder, {"PYTHONPATH": str(ROOT)})
        return Running(process, port, "/", setup.folder / "output.log", ("peers.fake",))


class _Answers(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = b"%d" % len(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def main(port: int, replace: bool) -> None:
    server = _Server(("127.0.0.1", port), _Answers)
    while True:
        child = os.fork()
        if not child:
            server.serve_forever()
        os.waitpid(child, 0)
        if not replace:
            break


if __name__ == "__main__":
    main(int(sys.argv[1]), "replace" in sys.argv)
