"""Inputs to check optimisations on: the archive's warm-up sample, else a synthetic one from the handler."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handlers import wire
from handlers.requests.rows import decode_rows
from handlers.requests.sample import sample_of

CHECKED_ROWS = 2  # enough to detect rows that leak into each other


def sample_rows(handler: Any, model_dir: Path, config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return rows for `preprocess`, the best first: the handler may fail on one.

    For example, `preprocess` never sees a warm-up sample in a service envelope.

    Raises:
        HandlerError: the archive names a warm-up sample that is missing.
    """
    rows: list[dict[str, Any]] = []
    sample = sample_of(model_dir, config)
    if sample is not None:
        rows += decode_rows([wire.Row("optimize", [], [("body", sample.content_type, sample.body)])])
    made_up = getattr(handler, "example", None)
    if made_up is not None:
        rows.append({"body": made_up()})
    return rows
