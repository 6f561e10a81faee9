"""`tsctl metrics` prints what the daemon answers, and the ready-made files without one."""

import json

import pytest
import yaml

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon


def test_the_text_of_the_daemon_is_printed_as_it_is(daemon: FakeDaemon, invoke: Invoke) -> None:
    daemon.answer_body("GET /metrics", b"# TYPE a gauge\na 1.0\n", "text/plain")

    assert invoke("metrics").stdout == "# TYPE a gauge\na 1.0\n"


def test_a_daemon_without_metrics_is_an_error_with_the_remedy(daemon: FakeDaemon, invoke: Invoke) -> None:
    daemon.answer("GET /metrics", {}, 404)

    done = invoke("metrics")

    assert done.exit_code == 1
    assert "switched off" in done.stderr


def test_rules_and_board_need_no_daemon(invoke: Invoke) -> None:
    assert yaml.safe_load(invoke("metrics", "--rules").stdout)["groups"]
    assert json.loads(invoke("metrics", "--dashboard").stdout)["title"] == "tsctl"


@pytest.mark.parametrize("options", [("--rules", "--dashboard")])
def test_one_thing_is_printed_at_a_time(invoke: Invoke, options: tuple[str, ...]) -> None:
    assert invoke("metrics", *options).exit_code == 2
