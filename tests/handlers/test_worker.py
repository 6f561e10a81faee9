"""A worker's conversation, over a real socketpair and in this process."""

import io
import json
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests.handlers.samples import row, write
from tsctl.handlers import wire, worker
from tsctl.handlers.frame_reader import FrameReader
from tsctl.handlers.own_process import log_to_output
from tsctl.handlers.process.connection import DaemonConnection
from tsctl.handlers.process.threads import keep_handlers_choice, threads_in_force
from tsctl.handlers.worker import alike, load_failure, serve

ECHO = """
    import torch
    def handle(data, context):
        return data and [each.get("body", b"") for each in data]
    def batch_size(data, context):
        return data and [context.system_properties["batch_size"] for _ in data]
    def threads(data, context):
        return data and [torch.get_num_threads() for _ in data]
"""


def load_of(model_dir: Path, handler: str = "mine.py") -> wire.Load:
    return wire.Load("net", "1.0", str(model_dir), handler, {"model": {}}, batch_size=2, threads=1)


def converse(messages: Sequence[wire.ToWorker], rest: bytes = b"") -> tuple[int, list[wire.ToDaemon]]:
    """Send a worker all its messages; return its exit code and its messages."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"".join(map(wire.encode, messages)) + rest)
        ours.shutdown(socket.SHUT_WR)
        code = serve(DaemonConnection(theirs))
        theirs.shutdown(socket.SHUT_WR)
        said = b"".join(iter(lambda: ours.recv(65536), b""))
    return code, [wire.decode_for_daemon(frame) for frame in FrameReader().feed(said)]


def failure_of(load: wire.Load) -> wire.LoadFailed:
    """Let a worker fail to load; give what it says about that."""
    _, said = converse([load])
    assert isinstance(said[-1], wire.LoadFailed)
    return said[-1]


def test_it_loads_and_answers_batch_after_batch(model_dir: Path) -> None:
    write(model_dir / "mine.py", ECHO)
    batches = [wire.Predict(7, [row(b"a"), row(b"b")]), wire.Predict(8, [row(b"c")])]

    code, said = converse([load_of(model_dir), *batches])

    hello, loaded, first, second = said
    assert code == 0
    assert converse([]) == (0, [wire.Hello(os.getpid())]), "it leaves when nobody answers"
    assert isinstance(hello, wire.Hello)
    assert isinstance(loaded, wire.Loaded)
    assert loaded.own_handle
    assert isinstance(first, wire.Done)
    assert isinstance(second, wire.Done)
    assert (first.batch, [answer.body for answer in first.answers]) == (7, [b"a", b"b"])
    assert (second.batch, [answer.body for answer in second.answers]) == (8, [b"c"])
    assert 0 < loaded.seconds < 60
    assert 0 < first.seconds < 60


def test_what_a_load_has_freed_is_given_back_before_the_model_is_loaded(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(model_dir / "mine.py", ECHO)
    said: list[object] = []
    monkeypatch.setattr(worker, "give_memory_back", lambda: said.append("memory"))
    monkeypatch.setattr(DaemonConnection, "send", lambda _, message: said.append(type(message)))

    converse([load_of(model_dir)])

    assert said == [wire.Hello, "memory", wire.Loaded]


def test_a_stream_that_ends_within_a_frame_is_an_end(model_dir: Path) -> None:
    write(model_dir / "mine.py", ECHO)
    half = wire.encode(wire.Predict(7, [row(b"a")]))[:-1]

    code, said = converse([load_of(model_dir)], rest=bytes(half))

    assert code == 0
    assert [type(message) for message in said] == [wire.Hello, wire.Loaded]


def test_the_daemon_chooses_the_threads_and_the_batch_size(model_dir: Path) -> None:
    write(model_dir / "mine.py", ECHO)
    before = torch.get_num_threads()

    try:
        _, said = converse(
            [
                load_of(model_dir, "mine.py:threads"),
                wire.Predict(1, [row(b"")]),
                wire.Threads(2),
                wire.Predict(2, [row(b"")]),
            ]
        )
    finally:
        torch.set_num_threads(before)

    assert [message.answers[0].body for message in said if isinstance(message, wire.Done)] == [b"1", b"2"]
    run = wire.Predict(1, [row(b"")])
    _, said = converse([load_of(model_dir, "mine.py:batch_size"), run, wire.BatchSize(8), run])
    assert [message.answers[0].body for message in said if isinstance(message, wire.Done)] == [b"2", b"8"]


@pytest.mark.parametrize(
    "chooses",
    [
        pytest.param("torch.set_num_threads(3)", id="in torch"),
        pytest.param("import os; os.environ['OMP_NUM_THREADS'] = '3'", id="in the environment, after torch was loaded"),
    ],
)
def test_a_handler_that_sets_its_threads_while_it_loads_keeps_them(
    chooses: str, model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(model_dir / "mine.py", ECHO.replace("import torch", f"import torch; {chooses}", 1))
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    before, run = torch.get_num_threads(), wire.Predict(1, [row(b"")])

    try:
        _, said = converse([load_of(model_dir, "mine.py:threads"), run, wire.Threads(2), run])
        keep_handlers_choice(threads_in_force())
    finally:
        torch.set_num_threads(before)

    assert [message.answers[0].body for message in said if isinstance(message, wire.Done)] == [b"3", b"3"]
    [loaded] = [message for message in said if isinstance(message, wire.Loaded)]
    assert loaded.notes == ["the handler has set 3 threads for each operation; its worker's share is 1"]
    assert loaded.threads == 3


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        pytest.param("handlers/worker.py", ["mine.py"], id="of a worker"),
        pytest.param("handlers/template.py", ["mine.py"], id="of a template"),
        pytest.param("/usr/bin/pytest", ["pytest", "-x"], id="any other program keeps its own"),
    ],
)
def test_a_handler_that_reads_its_arguments_finds_those_of_a_script(
    program: str, arguments: list[str], model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(model_dir / "mine.py", "import sys; GIVEN = [*sys.argv]\ndef handle(data, context): return data and [GIVEN]")
    monkeypatch.setattr(sys, "argv", [program, "-x"])

    _, said = converse([load_of(model_dir), wire.Predict(1, [row(b"")])])

    [done] = [message for message in said if isinstance(message, wire.Done)]
    first, *others = json.loads(done.answers[0].body)
    assert [Path(first).name, *others] == arguments


def test_a_model_that_does_not_load_is_told_and_ends_the_worker(
    model_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(model_dir / "mine.py", "    def handle(data, context):\n        raise ValueError('no weights')\n")

    code, said = converse([load_of(model_dir), wire.Predict(1, [row(b"")])])

    failed = said[-1]
    assert code == wire.EXIT_LOAD_FAILED
    assert isinstance(failed, wire.LoadFailed)
    assert failed.error == "ValueError: no weights"
    assert failed.traceback in capsys.readouterr().err


@pytest.mark.parametrize("quiet", [True, False])
def test_the_reason_of_a_refused_optimisation_is_told_alone_and_is_printed_unless_that_is_left_to_the_daemon(
    quiet: bool, model_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(model_dir / "mine.py", "    def handle(data, context):\n        return data\n")
    load = load_of(model_dir)
    load.optimize, load.quiet = ["bf16", "int8"], quiet

    failed = failure_of(load)

    assert failed.refused == "`int8` replaces what `bf16` makes faster; drop one of them"
    assert failed.error == f"HandlerError: `optimize: bf16, int8` cannot be done: {failed.refused}"
    assert (failed.error in capsys.readouterr().err) is not quiet


def test_a_bug_of_ours_is_shown_whole(model_dir: Path) -> None:
    unchecked = load_of(model_dir)
    unchecked.manifest = {"model": None}

    failed = failure_of(unchecked)

    assert "worker.py" in failed.traceback
    assert failed.error == "AttributeError: 'NoneType' object has no attribute 'get'"
    write(model_dir / "mine.py", "    import sys\n    def handle(data, context):\n        sys.exit()\n")
    assert failure_of(load_of(model_dir)).error == "SystemExit"


def test_a_prepared_model_serves_workers_on_any_processors() -> None:
    load = wire.Load("m", "1.0", "/m", "h.py", {}, batch_size=4, threads=2, cpus=[0, 1])
    assert alike(load) == alike(wire.Load("m", "1.0", "/m", "h.py", {}, batch_size=8, threads=1))


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even this")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x" * 10_000_000),
        ValueError("x\n" * 5_000_000),
        ImportError("\ud800" * 1_000_000),
        MemoryError("x" * 10_000_000),
        Unprintable(),
    ],
    ids=["one line", "many lines", "no text", "memory", "nothing to print"],
)
def test_whatever_a_load_fails_with_is_a_message_to_the_daemon(error: Exception) -> None:
    try:
        raise error from ValueError("y" * 10_000_000)
    except type(error) as raised:
        failed = load_failure(raised)

    frame = wire.encode(failed)
    assert wire.decode_for_daemon(bytes(frame)[wire.LENGTH.size :]) == failed
    assert failed.error.startswith(type(error).__name__) and "characters more)" in failed.traceback
    assert failed.out_of_memory is isinstance(error, MemoryError)
    assert len(frame) < 4 * wire.LONGEST_TEXT


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_handler_may_print_any_letter_whatever_the_locale(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.BytesIO()
    monkeypatch.setattr(sys, stream, io.TextIOWrapper(pipe, encoding="ascii"))

    log_to_output()
    print("café → \udcff", file=getattr(sys, stream))

    assert pipe.getvalue() == "café → \\udcff\n".encode(), "at the line's end"
