"""Requests that come and go, with real workers: continuous batching, and coroutines."""

import contextlib
import http.client
from collections.abc import Iterator
from functools import partial

import pytest

from tests.e2e.served import Served, eventually

TEXT = {"content_type": "text/plain"}


@pytest.fixture(scope="module")
def daemon_of_tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("tokens")) as served:
        served.start()
        served.register("tokens", config="batchSize: 4\ncontinuousBatching: true\n")
        yield served


@pytest.fixture
def tokens(daemon_of_tokens: Served) -> Served:
    """The model `tokens`, whose worker runs nothing: what the test before has asked for is over."""
    alone = partial(daemon_of_tokens.ask, "/predictions/tokens", b"1", **TEXT)
    eventually(lambda: alone().body == b"1/1 ", "the worker runs nothing else")
    return daemon_of_tokens


@pytest.fixture
def talks(served: Served) -> Served:
    served.register("talks", config="asyncCommunication: true\n")
    return served


def opened(served: Served, model: str, body: str) -> http.client.HTTPConnection:
    connection = served.connect()
    connection.request("POST", f"/predictions/{model}", body.encode(), {"Content-Type": "text/plain"})
    return connection


def test_the_command_line_says_how_requests_run(tokens: Served) -> None:
    (tokens.folder / "three").write_text("3")

    told = " ".join(tokens.tsctl("describe", "tokens").split())
    assert "batching continuous, at most 4 requests on their own in a worker" in told
    shown = tokens.run("check", str(tokens.store / "tokens.mar"), str(tokens.folder / "three"))
    assert "batching  continuous, requests on their own in a worker" in shown.stderr
    assert shown.stdout == "1/1 2/1 3/1 \n"
    refused = tokens.run("tune", "tokens")
    assert (refused.returncode, "runs its requests on their own (`continuous`)" in refused.stderr) == (1, True)


@pytest.mark.thin
def test_requests_join_one_that_streams_and_leave_it(tokens: Served) -> None:
    with contextlib.closing(opened(tokens, "tokens", "1000000 slow")) as connection:
        long = connection.getresponse()
        assert long.read1().startswith(b"1/1 ")

        short = tokens.ask("/predictions/tokens", b"3", **TEXT)

    assert short.body == b"1/2 2/2 3/2 "


@pytest.mark.thin
def test_a_client_that_leaves_cancels_its_coroutine(talks: Served) -> None:
    connection = opened(talks, "talks", "100")
    eventually(lambda: talks.ask("/predictions/talks", b"counts", **TEXT).body == b"1 0", "it runs")

    connection.close()

    eventually(lambda: talks.ask("/predictions/talks", b"counts", **TEXT).body == b"0 1", "it was cancelled")
