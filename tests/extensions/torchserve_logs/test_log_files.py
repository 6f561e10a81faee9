"""Which of TorchServe's log files are written: LOG_LOCATION, METRICS_LOCATION, the metrics mode, log4j's file."""

from pathlib import Path

import pytest

from tsctl.daemon.config.config import resolve
from tsctl.daemon.core.errors import StartError

LOGS = {"ts_log", "model_log", "access_log"}
METRICS = {"ts_metrics", "model_metrics"}


def test_none_is_written_unless_asked_for() -> None:
    assert resolve({}, {}).log_files == {}


@pytest.mark.parametrize("variable", ["LOG_LOCATION", "TSCTL_LOG_LOCATION"])
def test_log_location_names_the_directory_of_three(variable: str, tmp_path: Path) -> None:
    config = resolve({}, {variable: str(tmp_path)})

    assert config.log_files == {name: tmp_path / f"{name}.log" for name in LOGS}
    assert config.origins["log_location"] == "environment"


def test_metrics_location_names_the_directory_of_the_others(tmp_path: Path) -> None:
    files = resolve({}, {"METRICS_LOCATION": str(tmp_path), "LOG_LOCATION": ""}).log_files

    assert files == {name: tmp_path / f"{name}.log" for name in METRICS}


@pytest.mark.parametrize(
    ("mode", "environment", "place"),
    [
        ("log", {}, "state/logs"),
        ("legacy", {"LOG_LOCATION": "logs"}, "logs"),
        ("log", {"METRICS_LOCATION": "metrics", "LOG_LOCATION": "logs"}, "metrics"),
        ("prometheus", {}, None),
    ],
)
def test_a_mode_that_logs_metrics_has_a_place_for_them(
    mode: str, environment: dict[str, str], place: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    files = resolve({"metrics_mode": mode, "state_dir": str(tmp_path / "state")}, environment).log_files

    found = {path.parent for name, path in files.items() if name in METRICS}
    assert found == (set() if place is None else {tmp_path / place})


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(StartError, match=r"`loud` is not a metrics mode \(prometheus, log, legacy\)"):
        resolve({"metrics_mode": "loud"}, {})


@pytest.mark.parametrize(
    ("vmargs", "has_more"),
    [
        ("-Dlog4j.configurationFile=file://FILE", False),
        ("-Dlog4j2.configurationFile=FILE", False),
        ("-Xmx1g -Dlog4j.configurationFile=file:FILE", True),
    ],
)
def test_log4js_file_is_not_read_and_a_note_says_what_names_the_files(
    vmargs: str, has_more: bool, tmp_path: Path
) -> None:
    log4j, properties = tmp_path / "log4j2.xml", tmp_path / "config.properties"
    properties.write_text(f"vmargs={vmargs.replace('FILE', str(log4j))}")

    config = resolve({"ts_config": str(properties)}, {"LOG_LOCATION": str(tmp_path)})

    assert config.log_files == {name: tmp_path / f"{name}.log" for name in LOGS}
    assert any(f"{log4j}: log4j 2's configuration is not read; `--log-location`" in note for note in config.notes)
    assert any("have no effect here: vmargs" in note for note in config.notes) == has_more
