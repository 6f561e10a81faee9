"""`tsctl metrics` prints the ready-made files without a daemon, and what one answers (transcripts/) safely."""

import json

import pytest
import yaml

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tests.tsctl.terminal.test_foreign_text import HOSTILE, as_terminal, harmless
from tsctl.cli import main


def test_rules_and_board_need_no_daemon(invoke: Invoke) -> None:
    assert yaml.safe_load(invoke("metrics", "--rules").stdout)["groups"]
    assert json.loads(invoke("metrics", "--dashboard").stdout)["title"] == "tsctl"


def test_a_label_writes_no_control_characters_to_a_terminal(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    tty = as_terminal(monkeypatch)
    daemon.answer_body("GET /metrics", HOSTILE.encode("utf-8", "replace"), "text/plain")

    with pytest.raises(SystemExit):
        main(["metrics"], prog_name="tsctl")

    assert "hid" in tty.seen and harmless(tty.seen), tty.seen
