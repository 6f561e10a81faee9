"""A web server on the loopback, in a thread of this process."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def web_server(answer: Callable[[BaseHTTPRequestHandler], None], protocol: str = "HTTP/1.0") -> Iterator[str]:
    """Answer each request so within the block; yield the server's URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = protocol

        def do_GET(self) -> None:
            answer(self)

        do_POST = do_HEAD = do_GET

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
            """Tests print nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore clients that leave."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
