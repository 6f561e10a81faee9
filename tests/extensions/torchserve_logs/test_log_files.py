"""Which of TorchServe's log files are written: LOG_LOCATION, METRICS_LOCATION, the metrics mode, log4j's file."""

import json
from pathlib import Path

import pytest

from tests.kit.said import said_in
from tsctl.daemon.config.config import resolve
from tsctl.daemon.core.errors import StartError

LOGS = {"ts_log", "model_log", "access_log"}


@said_in("places.txt")
def test_which_files_are_written(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    flags, environment = json.loads(given)
    config = resolve({"state_dir": "state", **flags}, environment)
    files = " ".join(f"{path.relative_to(tmp_path)}" for _, path in sorted(config.log_files.items()))
    return f"{files or 'none'}, log_location by {config.origins['log_location']}"


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
