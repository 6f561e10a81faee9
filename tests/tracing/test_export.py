"""Where traces are sent, and that nothing of it is loaded while they are off."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.build import make_config
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.tracing import export
from tsctl.daemon.tracing.endpoint import Destination, check, endpoint_of
from tsctl.daemon.tracing.export import TraceExport

BASE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://all:4318/"}
EXACT = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://traces/there"}


@pytest.mark.parametrize(
    ("flags", "environment", "expected"),
    [
        pytest.param({}, {}, None, id="off"),
        pytest.param({"trace_endpoint": "http://c:4318"}, {}, "http://c:4318/v1/traces", id="a collector"),
        pytest.param({"trace_endpoint": "http://c:4318/"}, BASE, "http://c:4318/v1/traces", id="the setting wins"),
        pytest.param({"trace_endpoint": "https://c/own/path"}, {}, "https://c/own/path", id="a whole URL"),
        pytest.param({}, BASE, "http://all:4318/v1/traces", id="the collector of all signals"),
        pytest.param({}, BASE | EXACT, "http://traces/there", id="the collector of traces"),
        pytest.param({"trace_endpoint": "none"}, BASE | EXACT, None, id="switched off by the setting"),
        pytest.param({}, BASE | {"OTEL_SDK_DISABLED": "True"}, None, id="switched off for all programs"),
    ],
)
def test_where_traces_are_sent(
    tmp_path: Path, flags: dict[str, str], environment: dict[str, str], expected: str | None
) -> None:
    found = endpoint_of(make_config(tmp_path, **flags), environment)

    assert (None if found is None else found.url) == expected


def test_a_setting_without_the_library_is_refused_with_the_command_that_installs_it() -> None:
    with pytest.raises(StartError, match="`trace_endpoint` is set") as raised:
        check(Destination("http://c/v1/traces", "trace_endpoint"), present=False)

    assert "`pip install 'tsctl[traces]'`" in raised.value.hint


def test_a_variable_without_the_library_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "installed", lambda: False)

    opened = TraceExport(make_config(tmp_path), BASE, "1.0")

    assert opened.begin(FakeClock(), lambda sentence: None) is None
    (note,) = opened.notes
    assert note.startswith("warning: `OTEL_EXPORTER_OTLP_ENDPOINT` is set, and no traces are sent")
    assert "pip install 'tsctl[traces]'" in note


def test_a_daemon_without_traces_has_no_recorder_and_nothing_to_close(tmp_path: Path) -> None:
    opened = TraceExport(make_config(tmp_path), {}, "1.0")

    assert opened.begin(FakeClock(), lambda sentence: None) is None
    assert opened.notes == ()
    opened.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "loaded"),
    [pytest.param({}, "False", id="off"), pytest.param(BASE, "True", id="on")],
)
def test_opentelemetry_is_loaded_only_where_traces_are_asked_for(
    tmp_path: Path, environment: dict[str, str], loaded: str
) -> None:
    program = (
        "import sys; from pathlib import Path; import tsctl.daemon.server.daemon;"
        "from tsctl.daemon.tracing.export import TraceExport;"
        "from tsctl.daemon.config.config import resolve;"
        "config = resolve({'state_dir': sys.argv[1], 'socket': sys.argv[1] + '/s'}, {});"
        f"TraceExport(config, {environment!r}, '1'); print('opentelemetry' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == loaded
