"""The wall clock may jump: it is read to write down when something was, never to decide anything."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
WALL = {"time", "time_ns", "localtime", "gmtime", "ctime", "strftime"}  # of the module time

MAY_READ_IT = {
    "handlers/envelopes/openai_wording.py": "when an answer was made, for its client",
    "daemon/core/logs.py": "the stamp of a line",
    "daemon/api/access_log.py": "the stamp of a line",
    "daemon/extensions/live/batches.py": "when a batch ended, for people",
    "daemon/extensions/tensors/metadata.py": "when a model answered last, for people",
    "daemon/extensions/scaling/service.py": "when the number of workers was changed, for people",
    "daemon/extensions/residency/service.py": "when a version was used and will be unloaded, for people",
    "daemon/extensions/live/counts.py": "when the numbers were read, for people",
    "daemon/extensions/object_stores/parts.py": "how old the files of interrupted downloads are, over restarts",
    "daemon/extensions/optimizing/trials.py": "when a trial began and ended, for people",
    "daemon/models/persistence/snapshot_file.py": "when a model was changed, for people",
    "daemon/models/reporting/reports.py": "when a prediction failed, for people",
    "daemon/api/management/describe.py": "since when a worker is there, as text",
    "daemon/extensions/history/course.py": "when a sample was taken, for people; how old those of a run before are",
    "daemon/config/tokens.py": "whether a key of TorchServe's file has expired, at a date that the file says",
    "daemon/events/events.py": "when something happened",
    "daemon/extensions/torchserve_logs/snapshots.py": "the names of files, and when they were written",
    "daemon/lifecycle/supervision.py": "when a server has ended, for people",
    "daemon/marfile.py": "when an archive was made",
    "daemon/server/kernel.py": "since when the daemon is there",
    "daemon/extensions/tracing/tracer.py": "when a span began and ended",
    "daemon/workers/local.py": "since when a worker is there",
    "handlers/optimize/packages/keeping.py": "when libraries were used last, by the time of their folder",
    "handlers/ray/node/model_files.py": "when a copy was used last, by the time of its directory",
    "handlers/sdk/metrics.py": "the stamp of a line",
    "handlers/torchserve/metrics_store.py": "the stamp of a line",
    "tsctl/commands/events.py": "when something happened, for people",
    "daemon/extensions/torchserve_logs/files.py": "the stamp of a line",
    "daemon/extensions/torchserve_logs/metric_log.py": "the stamp of a measurement",
    "tsctl/logs/lines.py": "the stamp of a line",
    "tsctl/logs/merging.py": "the time of a line that has none, and of no line before it",
    "tsctl/commands/tune.py": "when a model was tuned, for people",
    "tsctl/doctor/machine.py": "whether it is the steady clock's pace",
    "tsctl/extensions/live/detail.py": "when a batch was sent, for people",
    "tsctl/extensions/live/event_lines.py": "when something happened, for people",
    "tsctl/extensions/live/table.py": "when the numbers were read, for people",
    "tsctl/private_daemon.py": "how old an empty folder of a process is that was killed",
    "tsctl/python/answers.py": "how long it is until the date of `Retry-After`",
    "tsctl/terminal/since_option.py": "a time that is so long ago",
    "daemon/extensions/residency/residence.py": "since when a version is in memory or not, for people",
    "tsctl/commands/describe.py": "since when a version is in memory or not, for people",
    "tsctl/extensions/apply/rollback.py": "how long ago a change was, for people",
    "tsctl/commands/status.py": "how long the daemon is there, for people",
    "tsctl/serving/session.py": "the stamp of a line",
}


def readings(tree: ast.AST) -> Iterator[str]:
    """The names by which a module reads the wall clock."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="time"), attr=name) if name in WALL:
                yield f"time.{name}"
            case ast.ImportFrom(module="time", names=names):
                yield from (f"time.{alias.name}" for alias in names if alias.name in WALL)
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name == "datetime")
            case ast.ImportFrom(module="datetime"):
                yield "datetime"


def test_the_wall_clock_is_read_only_in_these_places() -> None:
    found = {
        str(path.relative_to(ROOT))
        for room in ("daemon", "handlers", "tsctl")
        for path in (ROOT / room).rglob("*.py")
        if any(readings(ast.parse(path.read_text())))
    }

    may = {name for name in MAY_READ_IT if "/extensions/" not in name or (ROOT / name).exists()}  # one may be left out
    assert found == may


def test_each_way_of_reading_it_is_seen() -> None:
    source = (
        "import datetime\nfrom time import time, monotonic\nimport time as t, time\ntime.time_ns(); time.monotonic()"
    )

    assert list(readings(ast.parse(source))) == ["datetime", "time.time", "time.time_ns"]
