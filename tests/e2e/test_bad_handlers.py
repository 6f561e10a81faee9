"""A handler that damages its own process does not break the daemon: this and the next request are answered."""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.e2e.served import Answer, Served, eventually, running


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A daemon with the model `misbehaves`, for all tests of this file."""
    with Served(tmp_path_factory.mktemp("bad")) as served:
        served.start()
        served.register("misbehaves", "--workers", "1")
        yield served


def do(served: Served, word: str) -> Answer:
    return served.predict("misbehaves", {"do": word})


def healthy_worker(served: Served) -> int:
    """The pid of a worker that answers; a worker that is being replaced is waited for."""
    answers: list[Answer] = []

    def answered() -> bool:
        answers.append(do(served, "nothing"))
        return answers[-1].status == 200

    eventually(answered, "a worker answers")
    return int(answers[-1].json["pid"])


def last_exit(served: Served) -> str:
    return str(served.describe("misbehaves")["tsctl"]["lastExit"])


def end(worker: int) -> None:
    """End a worker, so that the next test gets one to which nothing has been done: its output may be closed."""
    os.kill(worker, signal.SIGKILL)
    eventually(lambda: not running(worker), "the worker is gone")


@pytest.mark.parametrize(
    "word",
    [
        "write_to_descriptors",
        "close_many",
        "close_all_but_one",
        "close_output",
        "fork",
        "fork_and_come_back",
        "fork_and_raise",
        "fork_and_exit",
        "fork_unseen_and_come_back",
        "leave_a_thread",
        "leave_a_program",
        "exit_in_a_thread",
        "run_programs",
        "fork_by_multiprocessing",
        "spawn_by_multiprocessing",
        "change_directory",
        "ignore_signals",
        "alarm_for_ever",
        "set_limits",
    ],
)
def test_a_handler_that_does_this_answers_and_its_worker_goes_on(served: Served, word: str) -> None:
    before = healthy_worker(served)

    answer = do(served, word)

    assert (answer.status, answer.json.get("pid")) == (200, before), answer.json
    assert healthy_worker(served) == before
    end(before)


@pytest.mark.thin
def test_a_handler_that_gives_up_fails_its_request_and_its_worker_goes_on(served: Served) -> None:
    before = healthy_worker(served)

    answer = do(served, "close_and_raise")

    assert answer.status == 503
    assert "Prediction failed: ValueError: with nowhere to say it" in answer.json["message"]
    assert healthy_worker(served) == before
    end(before)


@pytest.mark.thin
@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("close_connection", "its handler closed its connection to the daemon"),
        ("close_connection_and_stay", "its handler closed its connection to the daemon"),
        ("replace_connection_by_file", "its handler closed its connection to the daemon"),
        ("replace_connection_by_socket", "its handler closed its connection to the daemon"),
        ("leave_a_child_and_close", "its handler closed its connection to the daemon"),
        ("write_to_connection", "killed: it sent an invalid message to the daemon"),
        ("lie_about_metrics", "killed: it sent an invalid message to the daemon"),
        ("lie_about_time", "killed: it sent an invalid message to the daemon"),
        ("shut_connection_down", "it exited with code 0"),
        ("os_exit", "it exited with code 0"),
        ("exit_with_our_code", "it exited with code 3"),
        ("leave_an_unseen_child_and_exit", "it exited with code 0"),
        ("crash", "killed by SIGSEGV"),
        ("die_of_a_real_time_signal", "killed by signal 40"),
    ],
)
def test_a_handler_that_takes_its_worker_away_fails_its_request_with_the_reason(
    served: Served, word: str, reason: str
) -> None:
    before = healthy_worker(served)

    answer = do(served, word)

    assert answer.status == 500
    assert reason in answer.json["message"]
    assert healthy_worker(served) != before
    assert reason in last_exit(served)
    assert not running(before)


def test_a_handler_that_stops_its_process_is_killed_at_the_response_timeout(served: Served) -> None:
    before = healthy_worker(served)
    served.tsctl("set", "misbehaves", "--response-timeout", "5")
    try:
        answer = do(served, "stop")
    finally:
        served.tsctl("set", "misbehaves", "--response-timeout", "120")

    assert answer.status == 500
    assert "response timeout of 5 s" in answer.json["message"]
    assert healthy_worker(served) != before


def test_an_alarm_between_two_requests_costs_the_worker_and_no_request(served: Served) -> None:
    before = healthy_worker(served)

    assert do(served, "alarm").status == 200

    os.kill(before, signal.SIGALRM)  # when the answer is out

    eventually(lambda: not running(before), "the alarm has ended the worker")
    assert healthy_worker(served) != before
    eventually(lambda: "TimeoutError: rung" in served.tsctl("logs", "misbehaves"), "its last words are in the log")


@pytest.mark.parametrize(
    "word", ["ignore_signals", "leave_a_thread", "close_output", "close_all_but_one", "leave_an_unseen_child"]
)
def test_a_worker_of_such_a_handler_still_leaves_when_told(served: Served, word: str) -> None:
    healthy_worker(served)
    answer = do(served, word)
    assert answer.status == 200
    try:
        served.tsctl("scale", "misbehaves", "0")

        eventually(lambda: not running(answer.json["pid"]), "the worker has left")
    finally:
        served.tsctl("scale", "misbehaves", "1")
    if answer.json["child"]:
        eventually(lambda: not running(answer.json["child"]), "what it left is gone, too")


@pytest.mark.parametrize(
    "word", ["fork_and_come_back", "close_many", "ignore_signals", "change_directory", "parse_arguments", "fork"]
)
def test_a_handler_may_do_this_while_it_loads(served: Served, word: str) -> None:
    served.register("misbehaves", name="loads", config=f"do: {word}\n")

    assert served.predict("loads", {"do": "nothing"}).status == 200
    served.tsctl("unregister", "loads")


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("sys_exit", "SystemExit: 5"),
        ("interrupt", "KeyboardInterrupt"),
        ("os_exit", "it exited with code 0"),
        ("close_connection_and_stay", "its handler closed its connection to the daemon"),
        ("write_to_connection", "it sent an invalid message to the daemon"),
        ("leave_an_unseen_child_and_exit", "it exited with code 0"),
    ],
)
def test_a_handler_that_goes_wrong_while_it_loads_is_told_as_the_reason(served: Served, word: str, reason: str) -> None:
    failed = served.run("register", served.pack("misbehaves", "loads", config=f"do: {word}\n"))

    assert failed.returncode == 1
    assert reason in failed.stderr
    assert [model["name"] for model in served.status["models"]] == ["misbehaves"]
