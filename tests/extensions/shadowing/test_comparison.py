"""Answers are the same, close in their numbers, different, or the shadow failed."""

import json

from tests.kit.said import said_in
from tsctl.daemon.core.job import Reply
from tsctl.daemon.extensions.shadowing.mirror import compare


def reply(status: int, body: str) -> Reply:
    return Reply(status, body.replace("DEEP", "[" * 9998).encode(), error="E" * (status >= 400))


@said_in("compared.txt")
def test_compare(given: str) -> str:
    answered, shadow = (reply(*each) for each in json.loads(given))
    return compare(answered, shadow).name
