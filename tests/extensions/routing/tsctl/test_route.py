"""`tsctl route`: what TAB finds, and a text of others in its answer."""

import pytest

from tests.tsctl.fake_daemon import FakeDaemon
from tests.tsctl.terminal.test_foreign_text import as_terminal, harmless, hostile
from tests.tsctl.test_completion import MODELS, tab
from tsctl.cli import main


@pytest.mark.parametrize(
    ("line", "found"), [("tsctl route resnet ", ["2.0=", "1.0="]), ("tsctl route mnist 1", ["1.0="])]
)
def test_the_weights_of_a_models_versions_complete(daemon: FakeDaemon, line: str, found: list[str]) -> None:
    daemon.answer("GET /tsctl/status", {"models": MODELS})

    assert tab(line) == found


def test_control_characters_of_others_are_not_written_to_a_terminal(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    tty = as_terminal(monkeypatch)
    daemon.answer("GET /models/net/route", hostile({"modelName": "net", "default": "1.0", "route": None}))

    with pytest.raises(SystemExit):
        main(["route", "net"], prog_name="tsctl")

    assert "hid" in tty.seen and harmless(tty.seen), tty.seen
