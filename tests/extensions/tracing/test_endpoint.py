"""Where traces are sent, and that nothing of it is loaded while they are off."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.api.house import House
from tests.kit.said import said_in
from tests.places import ROOT
from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.extension import Kernel
from tsctl.daemon.extensions.tracing import TracingExtension, endpoint
from tsctl.daemon.extensions.tracing.buffer import TracingService
from tsctl.daemon.extensions.tracing.tracer import ModelTracer

BASE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://all:4318/"}


def configured(directory: Path, environment: dict[str, str], **flags: str) -> Config:
    return resolve({"state_dir": str(directory / "state"), "socket": str(directory / "s")} | flags, environment)


@said_in("endpoints.txt")
def test_where_traces_are_sent(given: str, tmp_path: Path) -> str:
    flags, environment = json.loads(given)
    found = configured(tmp_path, environment, **flags).trace_destination
    return "nowhere" if found is None else found.url


def test_a_setting_without_the_library_is_refused_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "installed", lambda: False)
    config = configured(tmp_path, {}, trace_endpoint="http://c")

    with pytest.raises(StartError, match="`trace_endpoint` is set") as raised:
        TracingExtension().install(cast(Kernel, SimpleNamespace(config=config)))

    assert config.notes == ()
    assert "`pip install 'tsctl[traces]'`" in raised.value.hint


def test_a_variable_without_the_library_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "installed", lambda: False)
    config = configured(tmp_path, BASE)

    assert TracingExtension().install(cast(Kernel, SimpleNamespace(config=config))) is None
    assert config.trace_destination is None
    (note,) = config.notes
    assert note.startswith("warning: `OTEL_EXPORTER_OTLP_ENDPOINT` is set, and no traces are sent")
    assert "pip install 'tsctl[traces]'" in note


async def test_a_daemon_without_traces_watches_no_request(tmp_path: Path) -> None:
    model = await House(tmp_path).serve("m")

    watching = [type(each).__module__ for each in (*model.watchers, *model.dispatcher.watchers)]
    assert (any("tracing" in each for each in watching), model.metrics.exemplars) == (False, None)


async def test_a_daemon_with_traces_counts_its_spans_and_tells_of_those_that_are_lost(tmp_path: Path) -> None:
    house = House(tmp_path, trace_endpoint="http://127.0.0.1:9", trace_sample="1")
    model = await house.serve("m")

    assert [type(each) for each in model.watchers] == [ModelTracer]
    assert ModelTracer in [type(each) for each in model.dispatcher.watchers]
    assert house.samples("tsctl_trace_spans_total")[("sent",)] == 0
    house.service(TracingService)._buffer._report("traces are lost")
    house.clock.settle()
    event = house.observation.events.after()[-1]
    assert (event.kind, event.text) == ("traces-lost", "traces are lost")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "loaded"),
    [pytest.param("", "False", id="off"), pytest.param("trace_endpoint='http://127.0.0.1:9'", "True", id="on")],
)
def test_opentelemetry_is_loaded_only_where_traces_are_asked_for(tmp_path: Path, settings: str, loaded: str) -> None:
    program = (
        "import sys; from pathlib import Path; import tsctl.daemon.server.daemon; from tests.api.house import House;"
        f"House(Path(sys.argv[1]), {settings}); print('opentelemetry' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == loaded
