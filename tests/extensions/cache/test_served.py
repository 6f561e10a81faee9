"""A cache of answers on a real daemon: its workers run a request once, however often it comes, and however large."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.served import Served

LARGE = bytes(range(256)) * 1024 * 4  # 1 MiB: through shared memory, and hashed in a thread


@pytest.fixture
def cached(served: Served) -> Served:
    served.register("mirror", config="cache: {seconds: 3600, bytes: 16MiB}\n")
    return served


@pytest.mark.thin
def test_a_request_runs_once_and_its_answer_is_given_to_all(cached: Served) -> None:
    for body in (b"small", LARGE):
        with ThreadPoolExecutor(8) as clients:
            answers = list(clients.map(lambda _, body=body: cached.ask("/predictions/mirror", body), range(32)))

        assert {(answer.status, answer.body) for answer in answers} == {(200, body)}
    assert cached.ask("/predictions/mirror", b"other").body == b"other"

    told = cached.describe("mirror")["tsctl"]
    assert (told["cache"]["misses"], told["cache"]["hits"] + told["cache"]["shared"]) == (3, 62)
    assert sum(told["batching"]["sizes"].values()) == 3, "a worker ran more"
    assert "cache  " in cached.tsctl("describe", "mirror")
