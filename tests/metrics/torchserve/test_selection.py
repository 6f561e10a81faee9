"""TorchServe's metrics modes and declarations choose what `/metrics` shows; our own metrics are always there."""

import pytest

from daemon.metrics.exposition import family, render
from daemon.metrics.torchserve.selection import SERVER, Selection
from daemon.metrics.torchserve.shown import shown
from tests.metrics.reading import values

LABELS = {"model_name": "m", "model_version": "1.0", "hostname": "h"}
ALL = (
    ("tsctl_queue_jobs", {"model": "m"}),
    ("Requests2XX", {"Level": "Host"}),
    ("MemoryUsed", {"Level": "Host"}),
    ("ts_inference_requests_total", LABELS),
    ("HandlerTime", {"ModelName": "m"}),
    ("Words", {"ModelName": "m"}),
)


def names_of(selection: Selection) -> list[str]:
    families = [family(name, "gauge", name, [(dict(labels), 1)]) for name, labels in ALL]
    return [line.partition("{")[0] for line in values(render(shown(families, selection)).decode())]


@pytest.mark.parametrize(
    ("mode", "expected", "logged"),
    [
        pytest.param(None, [name for name, _ in ALL], [name for name, _ in ALL[1:]], id="no mode"),
        pytest.param("prometheus", [name for name, _ in ALL], [], id="prometheus"),
        pytest.param("log", ["tsctl_queue_jobs"], [name for name, _ in ALL[1:]], id="log"),
        pytest.param(
            "legacy",
            ["tsctl_queue_jobs", "ts_inference_requests_total"],
            ["Requests2XX", "MemoryUsed", "HandlerTime", "Words"],
            id="legacy",
        ),
    ],
)
def test_a_mode_chooses_where_metrics_go(mode: str | None, expected: list[str], logged: list[str]) -> None:
    selection = Selection(mode)

    assert names_of(selection) == expected
    assert [name for name, _ in ALL[1:] if selection.logged(name)] == logged


def test_what_a_file_does_not_declare_is_neither_shown_nor_logged() -> None:
    selection = Selection(None, {"MemoryUsed": ["Level"]}, {"HandlerTime"})

    assert names_of(selection) == ["tsctl_queue_jobs", "MemoryUsed", "HandlerTime"]
    assert not selection.logged("Requests2XX")
    assert not selection.logged("Words")


def test_a_name_is_declared_as_the_handler_writes_it() -> None:
    selection = Selection(None, None, {"words per minute"})

    assert selection.known("words_per_minute")


def test_the_machine_can_be_left_out() -> None:
    selection = Selection(machine=False)

    assert "MemoryUsed" not in names_of(selection)
    assert [name for name in SERVER if not selection.known(name)].count("CPUUtilization") == 1


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        pytest.param(["m", "v", "h"], {"m": "m", "v": "1.0", "h": "h"}, id="by position"),
        pytest.param(["m"], LABELS, id="not if their number differs"),
        pytest.param(["m", "m", "m"], LABELS, id="not if two have one name"),
    ],
)
def test_a_file_renames_the_dimensions_of_the_servers_metrics(declared: list[str], expected: dict[str, str]) -> None:
    selection = Selection(None, {"ts_inference_requests_total": declared})

    (made,) = shown([family("ts_inference_requests_total", "counter", "x", [(dict(LABELS), 1)])], selection)

    assert made.samples[0].labels == expected
