"""`tsctl metrics` prints what the daemon answers, and the ready-made files without one."""

import json

import yaml

from tests.tsctl.conftest import Invoke


def test_rules_and_board_need_no_daemon(invoke: Invoke) -> None:
    assert yaml.safe_load(invoke("metrics", "--rules").stdout)["groups"]
    assert json.loads(invoke("metrics", "--dashboard").stdout)["title"] == "tsctl"
