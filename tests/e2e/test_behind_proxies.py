"""Behind nginx and HAProxy as the guide configures them: what they forward is what we see, whatever a client sends."""

import contextlib
import http.client
import random
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.backend import Backend, upload
from tests.e2e.served import PATIENCE, accepts, eventually, free_port
from tests.http.hostile.framing import CHUNKS, ENCODINGS, LENGTHS
from tests.http.hostile.lines import HEADERS, METHODS, TARGETS, VERSIONS
from tests.http.hostile.outcome import END, Vectors
from tests.places import ROOT

BODY = random.Random(1).randbytes(10 * 1024**2)
LAST = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
TABLES = [LENGTHS, ENCODINGS, CHUNKS, TARGETS, VERSIONS, METHODS, HEADERS]

GUIDE = (ROOT / "docs/guides/proxies.md").read_text()
NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 64; }}
http {{
    access_log off; client_header_timeout 1s; client_body_timeout 1s; keepalive_timeout 1s;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    {guide}
}}
"""
# Of the guide's configuration, what is another here: ports without a certificate, and short times.
NGINX_HERE = {
    "listen 443 ssl http2;": "listen 127.0.0.1:{port};",
    "ssl_certificate /etc/ssl/models.pem;": "",
    "ssl_certificate_key /etc/ssl/models.key;": "",
}
HAPROXY_HERE = {
    "bind :443 ssl crt /etc/haproxy/models.pem alpn h2,http/1.1": "bind 127.0.0.1:{port}",
    "timeout client 150s": "timeout client 1s\n    timeout http-request 1s\n    timeout http-keep-alive 1s",
    "option httpchk GET /live": "http-reuse always",
    " check\n": "\n",  # a check would be one more request to count
}
COMMANDS = {
    "nginx": (NGINX, NGINX_HERE, ["-c"]),
    "haproxy": ("{guide}", HAPROXY_HERE, ["-db", "-f"]),
}


def of_the_guide(name: str, here: dict[str, str], port: int, behind: int) -> str:
    """Return a proxy's configuration in the guide, for these ports."""
    found = re.search(rf"```{name}\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    text = found[1]
    for its, ours in {**here, "127.0.0.1:8080": f"127.0.0.1:{behind}"}.items():
        assert its in text
        text = text.replace(its, ours.format(port=port))
    return text


class Proxy:
    """A proxy, and us behind it."""

    def __init__(self, name: str, program: str, folder: Path) -> None:
        self.backend = Backend()
        self.port = free_port()
        text, here, options = COMMANDS[name]
        config = folder / f"{name}.conf"
        guide = of_the_guide(name, here, self.port, self.backend.port)
        config.write_text(text.format(folder=folder, guide=guide))
        with (folder / "output").open("wb") as output:
            self._process = subprocess.Popen([program, *options, str(config)], stdout=output, stderr=output)
        try:
            eventually(lambda: accepts(self.port), f"{name} listens")
        except BaseException:
            self.stop()
            raise

    @contextlib.contextmanager
    def connect(self) -> Iterator[http.client.HTTPConnection]:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as client:
            yield client

    def send(self, data: bytes) -> bytes:
        """Send bytes; give all that is answered until the proxy closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as client:
            received = b""
            with contextlib.suppress(ConnectionResetError):
                client.sendall(data)
                while more := client.recv(65536):
                    received += more
            return received

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        self.backend.stop()


@pytest.fixture(scope="module", params=COMMANDS)
def proxy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    program = shutil.which(request.param, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if program is None:
        pytest.skip(f"{request.param} is not installed (python -m tests.lab proxies)")
    proxy = Proxy(request.param, program, tmp_path_factory.mktemp(request.param))
    yield proxy
    proxy.stop()


def test_requests_on_one_connection_arrive_in_order(proxy: Proxy) -> None:
    with proxy.connect() as client:
        proxy.backend.seen.clear()

        for number in range(5):
            client.request("GET", f"/{number}?a=b%20c")
            answer = client.getresponse()
            assert (answer.status, answer.headers["Seen"], answer.read()) == (200, f"/{number}?a=b%20c", b"nothing")

        assert [target for _, target, _ in proxy.backend.seen] == [f"/{number}?a=b%20c" for number in range(5)]


@pytest.mark.parametrize("is_chunked", [False, True], ids=["of known length", "in chunks"])
def test_ten_megabytes_arrive_and_come_back(proxy: Proxy, is_chunked: bool) -> None:
    with proxy.connect() as client:
        pieces = (BODY[start : start + 100_000] for start in range(0, len(BODY), 100_000))

        client.request("POST", "/", pieces if is_chunked else BODY, encode_chunked=is_chunked)

        assert client.getresponse().read() == BODY


@pytest.mark.parametrize("headers", [{}, {"Expect": "100-continue"}], ids=["sent at once", "with an expectation"])
@pytest.mark.parametrize("is_chunked", [False, True], ids=["of known length", "in chunks"])
def test_an_upload_over_the_limit_is_answered_413(proxy: Proxy, is_chunked: bool, headers: dict[str, str]) -> None:
    with proxy.connect() as client:
        status, text = upload(client, 65, is_chunked=is_chunked, headers=headers)

    assert status == 413 and "max_request_size" in text


def test_head_has_the_length_and_no_body_and_a_client_that_closes_gets_its_answer(proxy: Proxy) -> None:
    with proxy.connect() as client:
        client.request("HEAD", "/")
        answer = client.getresponse()

        assert (answer.status, answer.headers["Content-Length"], answer.read()) == (200, "7", b"")
        client.request("GET", "/after", headers={"Connection": "close"})
        answer = client.getresponse()
        assert (answer.status, answer.headers["Seen"], answer.read()) == (200, "/after", b"nothing")


def test_a_client_that_waits_for_100_is_answered(proxy: Proxy) -> None:
    received = proxy.send(
        b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc"
    )

    assert b" 200 " in received and received.endswith(b"abc")


def hidden() -> Iterator[bytes]:
    """Make streams in which a request is a part of a body to one reader, and a request to another."""
    evil = b"GET /evil HTTP/1.1\r\nHost: a\r\nX: "
    for coding in (b" chunked", b" xchunked", b" x, chunked", b" chunked, identity", b"\tchunked", b" \x0bchunked",
                   b" chunked\x0c", b" chunked;q=1", b' "chunked"', b"", b"\r\n chunked", b" identity"):  # fmt: skip
        for name in (b"Transfer-Encoding:", b"Transfer-Encoding :", b"Transfer_Encoding:", b"X: y\nTransfer-Encoding:"):
            for body in (b"0\r\n\r\n" + evil, b"%x\r\n%b\r\n0\r\n\r\n" % (len(evil), evil)):
                for length in (b"4", b"%d" % len(body), b"+%d" % len(body), b"%d, 4" % len(body)):
                    lines = [b"Content-Length: " + length, name + coding]
                    for order in (lines, lines[::-1], lines[:1], lines[1:]):
                        yield b"POST / HTTP/1.1\r\nHost: a\r\n" + b"\r\n".join(order) + b"\r\n\r\n" + body


def through(proxy: Proxy, data: bytes) -> list[str]:
    """Send a stream, and a last request; give the bodies that we saw of as many requests as the proxy answered."""
    proxy.backend.seen.clear()
    received = proxy.send(data + LAST)
    told = proxy.backend.seen
    answered = re.findall(r"(?i)\r\nseen: ([^\r]*)", received.decode("latin-1"))
    if received == b"nothing":
        answered = ["/"]  # nginx speaks HTTP/0.9, where an answer has no head; to us it speaks HTTP/1.1

    assert answered == [target for _, target, _ in told], data
    assert all(target.encode() in data + LAST for target in answered), data
    return [body.decode("latin-1") for _, _, body in told]


@pytest.mark.parametrize(
    "table", TABLES, ids=["lengths", "encodings", "chunks", "targets", "versions", "methods", "headers"]
)
def test_whatever_is_sent_the_proxy_counts_the_requests_that_we_see(proxy: Proxy, table: Vectors) -> None:
    forwarded = 0
    for name, (data, expected) in table.items():
        bodies = through(proxy, data)
        forwarded += len(bodies)
        if not any(isinstance(each, int) for each in expected):  # who is clear to us is clear to the proxy
            ours = [each.split(" ", 2)[2] for each in map(str, expected) if each != END]
            assert all(a == b for a, b in zip(bodies, ours, strict=False)), name

    assert forwarded


def test_no_request_is_hidden_in_a_body(proxy: Proxy) -> None:
    forwarded = sum(len(through(proxy, data)) for data in sorted(set(hidden())))

    assert forwarded
