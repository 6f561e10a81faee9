"""The TCP addresses of a real daemon, as curl sees them: tokens, web pages, foreign hosts, TLS."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.certificate import make_certificate, needs_openssl
from tests.e2e.served import PATIENCE, Served, eventually

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="needs the program curl")

SECRET = "open-sesame-1001"
BEARER = f"Authorization: Bearer {SECRET}"
# Two addresses of this machine, so that both may leave the port to the kernel.
ADDRESSES = ("--inference-address", "127.0.0.1:0", "--management-address", "127.0.0.2:0")


def token_file(served: Served) -> str:
    file = served.folder / "token"
    file.touch(mode=0o600)
    file.write_text(f"{SECRET}\n")
    return str(file)


def curl(url: str, *options: str, method: str = "") -> tuple[int, Any]:
    """Ask, and give the status and the document; the status is 0 if there was no answer."""
    words = ["curl", "--silent", "--noproxy", "*", "--max-time", f"{PATIENCE:g}", "--write-out", "\n%{http_code}"]
    headers = [word for option in options for word in (("--header", option) if ": " in option else (option,))]
    done = subprocess.run(
        [*words, *headers, *(["--request", method] if method else []), url],
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    body, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(body) if body else None


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A daemon whose management address needs a token; each test leaves it as it was."""
    with Served(tmp_path_factory.mktemp("guarded")) as served:
        served.start(*ADDRESSES, "--token-file", token_file(served))
        yield served


def management(served: Served) -> str:
    return str(served.status["managementAddress"])


@pytest.mark.thin
def test_the_token_opens_the_management_address(guarded: Served) -> None:
    url = f"{management(guarded)}/models"

    assert curl(url)[0] == 401
    assert curl(url, "Authorization: Bearer guess")[0] == 403
    assert curl(url, BEARER) == (200, {"models": []})
    assert management(guarded) in guarded.tsctl("status")
    for method, path in (("GET", "config"), ("POST", "upgrade"), ("GET", "live")):
        assert curl(f"{management(guarded)}/tsctl/{path}", BEARER, method=method)[0] == 404, "of the socket alone"


def test_a_token_file_counts_as_it_was_at_the_start_until_an_upgrade_which_refuses_one_that_others_can_read(
    idle: Served,
) -> None:
    file = Path(token_file(idle))
    idle.start(*ADDRESSES, "--token-file", str(file))
    file.write_text("another-sesame-1002")
    file.chmod(0o644)

    def statuses() -> list[int]:
        return [
            curl(f"{management(idle)}/models", each)[0]
            for each in (BEARER, "Authorization: Bearer " + file.read_text())
        ]

    assert statuses() == [200, 403]
    assert f"others can use the token file `{file}` (mode 0644); run `chmod 600 {file}`" in idle.run("upgrade").stderr
    assert statuses() == [200, 403]
    file.chmod(0o600)
    idle.tsctl("upgrade")

    assert statuses() == [403, 200]


@pytest.mark.parametrize("environment", [False, True], ids=["from a file", "from the environment"])
def test_the_token_is_shown_nowhere(idle: Served, environment: bool) -> None:
    idle.forks = False  # its command line is read
    given: tuple[str, ...] = ()
    if environment:
        idle.environment["TSCTL_TOKEN"] = SECRET
    else:
        given = ("--token-file", token_file(idle))
    idle.start(*ADDRESSES, "--log-level", "debug", *given)
    idle.register("echo")
    url = management(idle)
    answers = [curl(f"{url}/{path}", BEARER) for path in ("models", "models/echo", "models/x", "x")]
    answers.append(curl(f"{url}/models", BEARER, "Origin: a"))
    echoed = idle.ask("/predictions/echo", b"x", Authorization=f"Bearer {SECRET}")
    config = idle.command("GET", "/tsctl/config").body.decode()
    (worker,) = idle.pids("echo")
    worker_environment = Path(f"/proc/{worker}/environ").read_bytes()
    commands = b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in (idle.pid, worker))
    idle.tsctl("stop")

    origin = "environment" if environment else "flag"
    assert {"name": "token", "value": "set", "origin": origin} in json.loads(config)
    logs = "".join(file.read_text() for file in (idle.folder / "state" / "logs").iterdir())
    assert '"GET /models HTTP' in logs or '"GET /models" 200' in logs
    for place in (repr(answers), echoed.body.decode(), config, logs, worker_environment.decode(), commands.decode()):
        assert SECRET not in place


@pytest.mark.thin
@needs_openssl
def test_with_a_certificate_the_addresses_are_https(idle: Served) -> None:
    made = make_certificate(idle.folder)
    idle.start("--inference-address", "127.0.0.1:0", "--management-address", "localhost:0", *made.flags,
               "--metrics-address", "127.0.0.1:0", "--token-file", token_file(idle))  # fmt: skip
    idle.register("echo")
    trust = f"--cacert={made.certificate}".split("=")
    inference, commands = idle.status["inferenceAddress"], idle.status["managementAddress"]

    assert inference.startswith("https://") and commands.startswith("https://")
    assert curl(f"https://localhost:{commands.rpartition(':')[2]}/models/echo", BEARER, *trust)[0] == 200
    assert curl(f"{inference}/ping", *trust) == (200, {"status": "Healthy"})
    assert curl(f"{inference}/ping")[0] == 0  # nobody vouches for it
    assert curl(f"http://127.0.0.1:{idle.port}/ping")[0] == 0  # a failed handshake
    assert curl(f"{inference}/ping", *trust, "--tls-max", "1.1")[0] == 0
    large = idle.folder / "large"
    large.write_bytes(b"x" * 3_000_000)
    status, echoed = curl(f"{inference}/predictions/echo", *trust, "--data-binary", f"@{large}", "Content-Type: x/y")
    assert (status, len(echoed["row"]["body"]["bytearray"])) == (200, 3_000_000)
    measured = idle.status["metricsAddress"]
    assert measured.startswith("https://")
    assert (curl(f"{measured}/ping", *trust)[0], curl(f"{measured}/ping")[0]) == (404, 0)


@needs_openssl
def test_a_handshake_that_never_comes_does_not_stay(idle: Served) -> None:
    idle.start(*make_certificate(idle.folder).flags, "--header-timeout", "1")

    with socket.create_connection(("127.0.0.1", idle.port), timeout=PATIENCE) as silent:
        began = time.monotonic()
        assert silent.recv(1) == b""

    assert time.monotonic() - began < 30  # asyncio's own patience is 60 s


@needs_openssl
def test_a_stop_is_quick_with_tls_connections_open(idle: Served) -> None:
    import ssl

    made = make_certificate(idle.folder)
    idle.start(*made.flags)
    context = ssl.create_default_context(cafile=str(made.certificate))
    with (
        context.wrap_socket(socket.create_connection(("127.0.0.1", idle.port)), server_hostname="127.0.0.1"),
        socket.create_connection(("127.0.0.1", idle.port)),
    ):
        began = time.monotonic()
        idle.tsctl("stop")

    assert time.monotonic() - began < 20  # asyncio's own patience is 30 s
    eventually(lambda: idle.run("status").returncode == 3, "the daemon stops")
