"""Each value of TorchServe's metrics is a line of its file, as the operator's selection says."""

import re
from types import SimpleNamespace
from typing import cast

import pytest

from tests.metrics.test_metrics import run
from tsctl.daemon.extensions.torchserve_logs.files import TorchServeFile
from tsctl.daemon.extensions.torchserve_logs.logs import WorkerNames, copy_of
from tsctl.daemon.extensions.torchserve_logs.metric_log import MetricLog, PrintedMetric
from tsctl.daemon.extensions.torchserve_logs.selection import TorchServeSelection
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.handlers.wire import Measurement

TAIL = re.compile(r"#hostname:[^,]+(,requestID:[^|]+?)?,timestamp:\d{10}$")


class Lines:
    """The lines of the two files, without host and time."""

    def __init__(self, selection: TorchServeSelection | None = None, units: dict[str, str] | None = None) -> None:
        self.server: list[str] = []
        self.models: list[str] = []
        self.log = MetricLog(
            selection or TorchServeSelection(), lambda line: self._take(self.server, line),
            lambda line: self._take(self.models, line), units,
        )  # fmt: skip

    def _take(self, lines: list[str], line: str) -> None:
        found = TAIL.search(line)
        assert found is not None, line
        lines.append(line[: found.start()] + (found[1] or "").removeprefix(","))


@pytest.mark.parametrize(("status", "group"), [(200, "2XX"), (404, "4XX"), (503, "5XX"), (302, "5XX")])
def test_each_answer_is_a_line(status: int, group: str) -> None:
    lines, metrics = Lines(), Metrics()
    metrics.log = lines.log

    metrics.answered(status)

    assert lines.server == [f"Requests{group}.Count:1.0|#Level:Host|"]


def version_in(metrics: Metrics) -> VersionMetrics:
    version = VersionMetrics("m", "1.0")
    metrics.add(version)
    return version


def test_each_request_and_each_batch_are_lines() -> None:
    lines, metrics = Lines(), Metrics()
    metrics.log = lines.log
    version = version_in(metrics)
    version.emitted.add_measurements(
        [Measurement("gauge", "HandlerTime", "ms", (("ModelName", "m"), ("Level", "Model")), 1400)]
    )

    run(version, unnamed=True)

    labels = "|#model_name:m,model_version:default|"
    assert lines.server == [
        f"ts_inference_requests_total.Count:1.0{labels}",
        f"ts_queue_latency_microseconds.Microseconds:1000000.0{labels}",
        "QueueTime.Milliseconds:1000.0|#Level:Host|",
        "WorkerThreadTime.Milliseconds:500.0|#Level:Host|",
        f"ts_inference_latency_microseconds.Microseconds:3000000.0{labels}",
    ]
    assert lines.models == [
        "HandlerTime.ms:1400.0|#ModelName:m,Level:Model|requestID:j",
        "PredictionTime.ms:1500.0|#ModelName:m,Level:Model|requestID:j",
    ]


def test_a_version_that_replaces_another_goes_on_with_the_log() -> None:
    lines, metrics = Lines(), Metrics()
    metrics.log = lines.log
    old, new = version_in(metrics), VersionMetrics("m", "1.0")

    metrics.replace(old, new)
    run(new)

    assert lines.server[0] == "ts_inference_requests_total.Count:1.0|#model_name:m,model_version:1.0|"


def test_only_what_is_selected_is_logged_and_under_its_declared_unit_and_dimensions() -> None:
    lines = Lines(
        TorchServeSelection(None, {"QueueTime": ["Place", "Host"]}, {"Words"}), {"QueueTime": "ms", "Words": "words"}
    )

    lines.log.waited("net", "1.0", 0.5)
    for name in ("Words", "Other"):
        lines.log.printed(PrintedMetric(name, "Count", 3.0, "ModelName:net", "vm", ""))

    assert lines.server == ["QueueTime.ms:500.0|#Place:Host|"]
    assert lines.models == ["Words.words:3.0|#ModelName:net|requestID:null"]


def test_the_names_of_workers_and_gpus_are_dimensions() -> None:
    lines = Lines()

    lines.log.of_host("WorkerLoadTime", 7, {"WorkerName": "W-9000-net_1.0"})
    lines.log.of_gpu("GPUUtilization", 90.5, "1")

    assert lines.server == [
        "WorkerLoadTime.Milliseconds:7.0|#WorkerName:W-9000-net_1.0,Level:Host|",
        "GPUUtilization.Percent:90.5|#Level:Host,DeviceId:1|",
    ]


def test_the_output_of_workers_goes_to_the_models_log_and_its_measurements_to_their_file() -> None:
    lines, written = Lines(), list[tuple[str, ...]]()
    file = SimpleNamespace(write=lambda *line: written.append(line))
    copy = copy_of([cast(TorchServeFile, file)], lines.log, "net", "1.0")

    copy("loading\n[METRICS]Heat.C:3|#|#type:GAUGE|#hostname:vm,1700000000\n[METRICS]broken", 1, "stdout")
    copy("oh dear", 1, "stderr")
    copy("(3 lines were dropped)", 1, "daemon")

    assert written == [
        ("INFO", "W-9000-net_1.0-stdout", "MODEL_LOG", "loading"),
        ("INFO", "W-9000-net_1.0-stdout", "MODEL_LOG", "[METRICS]broken"),
        ("WARN", "W-9000-net_1.0-stderr", "MODEL_LOG", "oh dear"),
        ("WARN", "main", "MODEL_LOG", "(3 lines were dropped)"),
    ]
    assert lines.models == ["Heat.C:3.0|#|requestID:null"]


def test_a_worker_that_replaces_another_gets_its_name() -> None:
    alive = {11, 12}
    names = WorkerNames("net", "1.0", alive.__contains__)

    first = [names.find(11), names.find(12), names.find(11)]
    alive.remove(11)
    alive.add(13)

    assert first == ["W-9000-net_1.0", "W-9001-net_1.0", "W-9000-net_1.0"]
    assert names.find(13) == "W-9000-net_1.0"
