"""Autoscaling as `tsctl describe` shows it."""

import json

import pytest

from tests.kit.said import said_in
from tests.tsctl.documents import DESCRIBED
from tsctl.commands.describe import show

AUTOSCALING = {
    "targetQueueMs": 50.0, "minWorkers": 1, "maxWorkers": 4, "predictedWaitMs": 12.0, "blocked": False,
    "reason": "enough", "quietSeconds": None, "takenAwayAfter": 60.0,
    "lastChange": {"at": 1990.0, "before": 1, "after": 2, "reason": "predicted wait 80 ms > 50 ms"},
}  # fmt: skip


@said_in("described.txt")
def test_describe_shows_why_the_number_of_workers_is_what_it_is(given: str, capsys: pytest.CaptureFixture[str]) -> str:
    scaling = AUTOSCALING | {"lastChange": None} | json.loads(given)
    show(DESCRIBED | {"tsctl": DESCRIBED["tsctl"] | {"autoscaling": scaling}})
    facts = dict(line.strip().split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[:8])
    return facts["autoscaling"]
