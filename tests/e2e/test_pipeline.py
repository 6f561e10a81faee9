"""`pipeline: true`: a worker reads the next request while it infers one."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.served import Served, eventually


@pytest.mark.thin
def test_a_request_is_read_while_the_one_before_is_inferred(served: Served) -> None:
    served.register("overlaps", "--response-timeout", "30", config="pipeline: true\n")

    with ThreadPoolExecutor(1) as clients:
        first = clients.submit(served.ask, "/predictions/overlaps", b"first", x_request_id="1")
        eventually(lambda: served.describe("overlaps")["tsctl"]["batching"]["running"] == 1, "the first one runs")
        last = served.ask("/predictions/overlaps", b"last", x_request_id="2")

    assert (first.result().body, last.body) == (b"first 1", b"last 2")
