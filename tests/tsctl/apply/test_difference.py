"""What a plan's steps are said to change: what was, and what will be."""

import json

import msgspec

from tests.kit.said import said_in
from tsctl.apply.difference import documents, texts_of
from tsctl.apply.plan import plan
from tsctl.apply.state import ModelSpec


@said_in("differences.txt")
def test_each_step_says_what_changes(given: str) -> str:
    now, wanted = ({"m": msgspec.convert(each, ModelSpec)} if each else {} for each in json.loads(given))
    steps = plan(now, wanted)
    told = [texts_of(step) for step in steps]
    assert [tuple(each.values()) for each in documents(steps)] == [each[1:-1] for each in told]
    return "\n".join(f"{' '.join(each[:4])}: {each.details}. {each.done}" for each in told)
