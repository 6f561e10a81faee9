"""The verdict of a real daemon, as `tsctl describe` shows it."""

import pytest

from tests.e2e.served import Served


@pytest.mark.thin
def test_describe_has_the_last_minute_and_a_verdict(served: Served) -> None:
    served.register("echo")
    for _ in range(3):
        served.ask("/predictions/echo", b"x")

    shown = served.tsctl("describe", "echo")

    assert "last minute" in shown and "3 requests" in shown
    assert "requests/s come, one worker can do" in shown
