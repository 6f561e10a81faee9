"""A measurement that a worker prints is read, and written as TorchServe writes it."""

import pytest

from tests.kit.said import said_in
from tsctl.daemon.extensions.torchserve_logs.metric_log import metric_line, parse_printed


@said_in("printed.txt")
def test_a_printed_measurement_is_parsed(given: str) -> str:
    return f"{parse_printed(given)}"


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (None, "Heat.C:3.0|#Where:here|#hostname:vm,timestamp:1700000000"),
        ("", "Heat.C:3.0|#Where:here|#hostname:vm,requestID:null,timestamp:1700000000"),
        ("id-a", "Heat.C:3.0|#Where:here|#hostname:vm,requestID:id-a,timestamp:1700000000"),
    ],
)
def test_a_value_is_torchserves_line(ids: str | None, expected: str) -> None:
    assert metric_line("Heat", "C", 3, "Where:here", "vm", 1_700_000_000.9, ids) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "3.0"), (0.1, "0.1"), (1.5e-05, "0.000015000"), (-2e17, "-200000000000000000.0"), (float("inf"), "inf")],
)
def test_a_number_has_no_exponent(value: float, text: str) -> None:
    assert metric_line("Heat", "C", value, "", "vm", 0).startswith(f"Heat.C:{text}|#")
