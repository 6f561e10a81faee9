"""TorchServe's metrics.yaml: what a file declares, and why a daemon does not start with another."""

from pathlib import Path

import pytest

from tests.kit.said import said_in
from tsctl.daemon.config.config import resolve
from tsctl.daemon.config.metrics_file import (
    MOST_METRICS,
    DeclaredMetric,
    MetricsFile,
    read_metrics_file,
)
from tsctl.daemon.core.errors import StartError

DECLARED = """
dimensions:
  - &model_name "ModelName"
  - &level "Level"
ts_metrics:
  counter:
    - {name: Requests2XX, unit: Count, dimensions: [*level, "Hostname"]}
model_metrics:
  counter:
    - name: InferenceRequestCount
      unit: count
      dimensions:
  gauge:
    - {name: RequestBatchSize, unit: count, dimensions: [*model_name]}
    - {name: SizeOfImage, unit: kB, dimensions: [*model_name, *level]}
"""


def read(folder: Path, text: str) -> MetricsFile:
    file = folder / "metrics.yaml"
    file.write_text(text)
    return read_metrics_file(file, "metrics_config")


def test_a_file_declares_metrics_by_type(tmp_path: Path) -> None:
    assert read(tmp_path, DECLARED) == MetricsFile(
        (DeclaredMetric("counter", "Requests2XX", "Count", ["Level", "Hostname"]),),
        (
            DeclaredMetric("counter", "InferenceRequestCount", "count", []),
            DeclaredMetric("gauge", "RequestBatchSize", "count", ["ModelName"]),
            DeclaredMetric("gauge", "SizeOfImage", "kB", ["ModelName", "Level"]),
        ),
    )


@pytest.mark.parametrize("text", ["", "mode: prometheus\n", "model_metrics:\n", "model_metrics:\n  gauge:\n"])
def test_a_section_may_be_empty(text: str, tmp_path: Path) -> None:
    assert read(tmp_path, text) == MetricsFile()


MANY = ", ".join(["{name: a, unit: ms, dimensions: []}"] * (MOST_METRICS + 1))


@said_in("bad_metrics.txt")
def test_an_invalid_file_is_refused_with_its_key_and_the_remedy(given: str, tmp_path: Path) -> str:
    with pytest.raises(StartError) as caught:
        read(tmp_path, given.replace("MANY", MANY))
    return f"{caught.value}\nhint: {caught.value.hint}".replace(str(tmp_path), "FOLDER")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"cannot read `.*nowhere.yaml`: No such file"):
        resolve({"metrics_config": str(tmp_path / "nowhere.yaml")}, {})


def test_the_key_of_config_properties_names_the_file_and_an_error_names_the_key(tmp_path: Path) -> None:
    (tmp_path / "metrics.yaml").write_text("- 3")
    properties = tmp_path / "config.properties"
    properties.write_text(f"metrics_config={tmp_path / 'metrics.yaml'}")

    with pytest.raises(StartError, match=r"config.properties: metrics_config: `.*` holds a list"):
        resolve({"ts_config": str(properties)}, {})
