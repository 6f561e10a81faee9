"""`pipeline: true`: a worker reads the next request while it infers one."""

import contextlib
import json
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from tests.e2e.served import Served, eventually


class Overlaps:
    """One worker that answers a request when it has read the next one."""

    def __init__(self, served: Served) -> None:
        self._served = served
        config = served.folder / "model-config.yaml"
        config.write_text("pipeline: true\n")
        served.register("overlaps", "--response-timeout", "30", config_file=config)
        self._before = self._received

    @property
    def _received(self) -> int:
        lines = self._served.ask("/metrics", method="GET").body.decode().splitlines()
        counts = [line for line in lines if line.startswith("ts_inference_requests_total{") and '"overlaps"' in line]
        return sum(int(float(line.rpartition(" ")[2])) for line in counts)

    def send(self, word: str, number: int) -> HTTPConnection:
        """Send the request with this number, and do not wait for its answer; give its connection."""
        connection = self._served.connect()
        connection.request("POST", "/predictions/overlaps", word.encode(), {"x-request-id": word})
        eventually(lambda: self._received - self._before == number, f"the daemon has {number} requests")
        return connection


def body_of(connection: HTTPConnection) -> bytes:
    with contextlib.closing(connection):
        return connection.getresponse().read()


@pytest.fixture
def overlaps(served: Served) -> Iterator[Overlaps]:
    yield Overlaps(served)
    served.run("unregister", "overlaps")


@pytest.mark.thin
def test_a_request_is_read_while_the_one_before_is_inferred(overlaps: Overlaps) -> None:
    first, second = overlaps.send("first", 1), overlaps.send("last", 2)

    assert [body_of(first), body_of(second)] == [b"first first", b"last last"]


def test_who_kills_the_worker_is_found_though_others_had_begun(overlaps: Overlaps) -> None:
    first, dies, last = overlaps.send("first", 1), overlaps.send("die", 2), overlaps.send("last", 3)

    assert "The worker died again" in json.loads(body_of(dies))["message"]
    assert [body_of(first), body_of(last)] == [b"first first", b"last last"]
