"""The access log remembers targets, which clients choose: few of them, and short ones."""

import pytest

from tsctl.daemon.api import access_log
from tsctl.daemon.api.access_log import json_line_of, line_of
from tsctl.daemon.http.messages import Request


@pytest.mark.parametrize("write", [line_of, json_line_of])
def test_long_targets_are_written_and_not_remembered(write: object) -> None:
    assert callable(write)
    access_log._plain.clear()
    for number in range(100):
        target = f"/predictions/{number}?" + "x" * 60_000
        assert target in write(Request("GET", target, []), 200, 0.1, "2030-01-01T00:00:00.000+00:00")

    assert sum(map(len, access_log._plain)) <= access_log._MOST_PLAIN * access_log._LONGEST_PLAIN
    assert not access_log._plain
