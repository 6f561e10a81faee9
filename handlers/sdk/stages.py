"""The times of a built-in handler's three stages, for `/metrics`.

They are those of the worker's thread: work that a GPU does later counts for the stage that waits for it, which is
`postprocess` as a rule. `handler: {profile: true}` waits after each stage (handlers/sdk/timer.py).
"""

from collections.abc import Sequence
from typing import Any

from tsctl.handlers.wire import STAGE_TIME, STAGES


def report_stages(context: Any, seconds: Sequence[float]) -> None:
    """Report how long each of `STAGES` took for one batch; do nothing without a worker's context."""
    tally = getattr(getattr(context, "metrics", None), "tally", None)
    if tally is not None:
        for stage, took in zip(STAGES, seconds, strict=True):
            tally.add("histogram", STAGE_TIME, "s", (("stage", stage),), took)
