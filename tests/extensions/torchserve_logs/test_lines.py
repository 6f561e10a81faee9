"""A measurement that a worker prints is read, and written as TorchServe writes it."""

import pytest

from tsctl.daemon.extensions.torchserve_logs.metric_log import PrintedMetric, metric_line, parse_printed


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "[METRICS]Words.Count:2|#Language:de,ModelName:net|#type:COUNTER|#hostname:vm,1700000000,id-a,id-b",
            PrintedMetric("Words", "Count", 2.0, "Language:de,ModelName:net", "vm", "id-a,id-b"),
        ),
        (
            "[METRICS]Heat.C:-1.5e-05|#|#type:GAUGE|#hostname:vm,1700000000",
            PrintedMetric("Heat", "C", -1.5e-05, "", "vm", ""),
        ),
        (
            "INFO > [METRICS]Old.ms:3|#Level:Model|#hostname:vm,1700000000",
            PrintedMetric("Old", "ms", 3.0, "Level:Model", "vm", ""),
        ),
        ("[METRICS]Heat.C:-|#|#hostname:vm,1700000000", None),
        ("[METRICS]Heat", None),
        ("my [METRICS]Heat.C:1|#|#hostname:vm,1700000000", None),
    ],
)
def test_a_printed_measurement_is_parsed(line: str, expected: PrintedMetric | None) -> None:
    assert parse_printed(line) == expected


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
