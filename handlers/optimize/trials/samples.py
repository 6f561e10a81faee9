"""Inputs to check optimisations on: the archive's warm-up samples, else a synthetic one from the handler."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handlers import wire
from handlers.requests.rows import decode_rows
from handlers.requests.sample import samples_of

CHECKED_ROWS = 2  # enough to detect rows that leak into each other


def archive_rows(model_dir: Path, config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the archive's warm-up samples as rows for `preprocess`.

    Raises:
        HandlerError: the archive names a warm-up sample that is missing.
    """
    samples = samples_of(model_dir, config)
    return decode_rows([wire.Row("optimize", [], [("body", each.content_type, each.body)]) for each in samples])


def made_up_rows(handler: Any) -> list[dict[str, Any]]:
    """Return the row that a handler makes up, if it can.

    For the case that the handler fails on a sample: for example, `preprocess` never sees one in a service envelope.
    """
    made_up = getattr(handler, "example", None)
    return [] if made_up is None else [{"body": made_up()}]
