"""The same request that ends workers, sent to a real daemon."""

import itertools

import pytest

from tests.e2e.served import Answer, Served


def ask(served: Served, model: str, body: bytes, **headers: str) -> Answer:
    return served.ask(f"/predictions/{model}", body, content_type="application/octet-stream", **headers)


@pytest.mark.thin
def test_the_same_request_is_refused_after_two_workers_and_operators_have_it_run_again(served: Served) -> None:
    served.register("crashes", name="m")
    size, ids = 200_000, itertools.count()
    bad = b"crash".ljust(size, b".")

    def again() -> str:
        assert ask(served, "m", b"good").status == 200  # a worker that has answered is replaced at once
        answer = ask(served, "m", bad, x_request_id=f"r{next(ids)}", traceparent=f"00-{next(ids):032x}-1-1")
        assert answer.status == 500
        return str(answer.json["message"])

    for _ in range(2):
        assert "The worker died while it ran this request: it exited with code 7" in again()
    refused = again()
    assert "This request was not run: the same request has ended 2 workers that ran it alone" in refused
    assert "`tsctl retry m/1.0` ends that now" in refused
    assert ask(served, "m", b"crust".ljust(size, b".")).json["length"] == size, "as large, and good"
    told = served.describe("m")["tsctl"]["quarantine"]
    assert told == {"suspects": 1, "refused": 1, "requestsRefused": 1, "crashesInARow": 0}

    assert served.tsctl("retry", "m") == 'Model "m" Version: 1.0 tried again, 1 of 1 workers ready\n'
    assert "The worker died" in again() and "The worker died" in again() and "was not run" in again()

    served.tsctl("set", "m", "--batch-size", "2")
    assert "The worker died" in again() and "The worker died" in again() and "was not run" in again()

    served.tsctl("set", "m", "--no-quarantine")
    for _ in range(3):
        assert "The worker died" in again()

    served.tsctl("register", served.pack("crashes", name="m"), "--replace", "--quarantine")
    assert "The worker died" in again() and "The worker died" in again() and "was not run" in again()
