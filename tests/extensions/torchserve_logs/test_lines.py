"""A measurement that a worker prints is read, and written as TorchServe writes it."""

import json

from tests.kit.said import said_in
from tsctl.daemon.extensions.torchserve_logs.metric_log import metric_line, parse_printed


@said_in("printed.txt")
def test_a_printed_measurement_is_parsed(given: str) -> str:
    return f"{parse_printed(given)}"


def test_a_line_of_blanks_does_not_keep_the_loop_for_minutes() -> None:
    assert parse_printed("[METRICS]" + " " * 200_000) is None


@said_in("values.txt")
def test_a_value_is_torchserves_line(given: str) -> str:
    return metric_line(*json.loads(given))
