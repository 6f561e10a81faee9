"""A version is in trouble if it has failed, answers errors, lets requests pile up, or has just lost a worker."""

import json

from tests.kit.said import said_in
from tsctl.daemon.models.reporting.trouble import troubles

NOW = 1000.0


@said_in("troubles.txt")
def test_troubles_are_told_in_a_few_words(given: str) -> str:
    facts = json.loads(given)
    if "ended" in facts:
        facts["ended"] = NOW - facts["ended"]
    return ", ".join(troubles(NOW, **facts))
