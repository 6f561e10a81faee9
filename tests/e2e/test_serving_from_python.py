"""`tsctl.serve`: a model in a daemon of its own, which leaves nothing behind however its program ends."""

import asyncio
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tsctl
from tests.certificate import make_certificate, needs_openssl
from tests.e2e.served import PATIENCE, Served, eventually, running
from tsctl.private_daemon import PREFIX

ROOT = Path(__file__).parents[2]


def handle(data: list[Any], context: Any) -> list[Any]:
    """Return the size of the batch and the body: a handler of this module, which the workers import."""
    return [{"batch": len(data), "body": row["body"]} for row in data or []]


def fails(data: Any, context: Any) -> Any:
    raise OSError("no weights today")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files: of a short name, as pytest's own, made before, may be too long for a socket."""
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.mark.thin
def test_a_function_is_served_until_the_block_ends(temporary: Path) -> None:
    with tsctl.serve(handle, batch_size=4, max_delay=100.0, settings={"batching": "fixed"}) as model:
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(model.predict, ["a", "b", "c", "d"]))
        (folder,) = temporary.glob(f"{PREFIX}*")
        mode = folder.stat().st_mode & 0o777
        workers = [worker["pid"] for worker in model.describe()["workers"]]

    assert [answer["body"] for answer in answers] == ["a", "b", "c", "d"]
    assert {answer["batch"] for answer in answers} == {4}
    assert mode == 0o700
    assert not any(map(running, workers))
    assert list(temporary.glob(f"{PREFIX}*")) == []


def test_an_archive_is_served_and_streams(idle: Served) -> None:
    idle.pack("counts")
    path = idle.folder / "go on"
    with tsctl.serve(idle.store / "counts.mar") as model:
        stream = model.stream(f"go {path}")
        first = next(stream)
        path.touch()

        rest = "".join(piece.decode() for piece in stream if isinstance(piece, bytes))
        assert (first, rest) == (b"0 ", "1 2 end")


def test_a_handler_that_does_not_load_is_told_with_its_traceback(temporary: Path) -> None:
    with pytest.raises(tsctl.ServeFailed, match="no weights today") as caught:
        tsctl.serve(fails)

    assert Path(__file__).name in str(caught.value)
    assert list(temporary.glob(f"{PREFIX}*")) == []


PROGRAM = """
    import os, sys, time
    import tsctl

    def handle(data, context):
        return [os.getpid() for row in data or []]

    model = tsctl.serve(handle)
    children = [os.fork() for _ in range(2)]
    if 0 in children:
        time.sleep(600)
    print(model.client.predict("handle", "x"), model._daemon.status['pid'], model.socket.parent, *children, flush=True)
    time.sleep(600)
"""


def test_kill_9_of_the_program_ends_daemon_and_workers(temporary: Path, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, script], env=environment, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        worker, daemon, folder, *children = program.stdout.readline().split()
        program.kill()

    try:
        eventually(lambda: not running(int(daemon)), "the daemon ends, although forks of the program live")
        eventually(lambda: not running(int(worker)), "so do its workers")
        assert all(running(int(child)) for child in children)
    finally:
        for child in children:
            os.kill(int(child), signal.SIGKILL)
    assert Path(folder).exists()
    with tsctl.serve(handle):
        assert not Path(folder).exists(), "the next one removes what was left"


@needs_openssl
def test_both_clients_ask_over_tls_with_a_token(idle: Served) -> None:
    made, token = make_certificate(idle.folder), idle.folder / "token"
    token.touch(0o600)
    token.write_text("sesame")
    idle.start(*made.flags, "--inference-token-file", str(token))
    idle.register("echo")
    url, trust = idle.status["inferenceAddress"], ssl.create_default_context(cafile=str(made.certificate))

    async def asked(**options: Any) -> list[bool]:
        async with tsctl.AsyncClient(url, **options) as client:
            return [bool(await client.predict("echo", b"x" * size)) for size in (1, 1_000_000, 1)]

    with tsctl.Client(url, token="sesame", tls=trust) as client:
        assert all(client.predict("echo", b"x" * size) for size in (1, 1_000_000, 1))
    assert asyncio.run(asked(token="sesame", tls=trust)) == [True] * 3
    for wrong, kind in (({"tls": trust}, tsctl.ErrorAnswer), ({"token": "sesame"}, tsctl.CannotConnect)):
        with pytest.raises(kind), tsctl.Client(url, **wrong) as client:
            client.predict("echo")
        with pytest.raises(kind):
            asyncio.run(asked(**wrong))


TEST = """
    def handle(data, context):
        return [{"length": len(row["body"])} for row in data or []]

    def test_the_handler(tsctl_serve):
        model = tsctl_serve(handle, batch_size=2)
        assert model.predict("hello") == {"length": 5}
"""


def test_the_fixture_serves_a_handler_of_a_test_file(temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(textwrap.dedent(TEST))
    command = [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider"]
    installed = subprocess.run(
        [*command, "--fixtures"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    ).stdout
    plugin = [] if "tsctl_serve" in installed else ["-p", "tsctl.python.pytest_plugin"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    done = subprocess.run(
        [*command, *plugin], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )

    assert done.returncode == 0, done.stdout
    assert list(temporary.glob(f"{PREFIX}*")) == []
