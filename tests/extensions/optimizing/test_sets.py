"""What is tried: only where it was asked for, or the handler has defaults and nothing was said."""

import json
from typing import Any

from tests.kit.said import said_in
from tsctl.daemon.extensions.optimizing.building import lossy_of, sets_to_try
from tsctl.daemon.extensions.optimizing.trials import is_tried


@said_in("tried.txt")
def test_who_is_tried(given: str) -> str:
    optimize, handler, wish = json.loads(given)
    return f"{is_tried(None if optimize is None else tuple(optimize), handler, wish)}"


@said_in("sets.txt")
def test_which_sets_are_tried(given: str) -> str:
    asked: dict[str, Any] = {"defaults": False, "compiler": True, "lossy": ()} | json.loads(given)
    return f"{sets_to_try(**asked)}"


@said_in("tolerated.txt")
def test_the_tolerances_allow_what_is_beyond_rounding(given: str) -> str:
    return f"{lossy_of({'optimizeTolerance': json.loads(given)})}"
