"""A handler written for TorchServe's metrics.yaml runs, and the file chooses what is shown."""

from pathlib import Path

import pytest

from tests.e2e.served import Served
from tests.kit.shelf import needs
from tests.metrics.reading import values

FILE = """
dimensions:
  - &model_name "ModelName"
  - &level "Level"
ts_metrics:
  counter:
    - {name: Requests2XX, unit: Count, dimensions: [*level, "Host"]}
model_metrics:
  gauge:
    - {name: RequestBatchSize, unit: count, dimensions: [*model_name]}
    - {name: HandlerTime, unit: ms, dimensions: [*model_name, *level]}
"""


def begin(served: Served, tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.yaml"
    metrics.write_text(FILE)
    properties = tmp_path / "config.properties"
    properties.write_text(f"metrics_config={metrics}\ndisable_system_metrics=true\n")
    served.start("--ts-config", str(properties))
    served.register("declared")


@needs("prometheus")
@pytest.mark.thin
def test_a_handler_reports_metrics_that_only_the_file_declares(idle: Served, tmp_path: Path) -> None:
    begin(idle, tmp_path)

    answer = idle.ask("/predictions/declared", b"x")

    assert (answer.status, answer.body) == (200, b"1")
    lines = values(idle.metrics)
    theirs = {line for line in lines if not line.startswith("tsctl_")}
    assert theirs == {
        "RequestBatchSize{ModelName=declared}",
        "HandlerTime{Level=Model,ModelName=declared}",
        next(line for line in lines if line.startswith("Requests2XX{Host=")),
    }


def test_a_check_takes_the_file_too(idle: Served, tmp_path: Path) -> None:
    metrics, sample = tmp_path / "metrics.yaml", tmp_path / "sample"
    metrics.write_text(FILE)
    sample.write_text("x")
    archive = str(idle.store / idle.pack("declared"))

    without = idle.run("check", archive, str(sample))
    given = idle.run("check", archive, str(sample), "--metrics-config", str(metrics))
    metrics.write_text("- 3")
    invalid = idle.run("check", archive, "--metrics-config", str(metrics))

    assert (without.returncode, given.returncode, invalid.returncode) == (1, 0, 1)
    assert "no gauge `RequestBatchSize` is declared" in without.stderr
    assert given.stdout == "1\n"
    assert f"--metrics-config: `{metrics}` holds a list; expected a mapping" in invalid.stderr
