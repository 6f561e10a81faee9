"""Inputs to check optimisations on: the archive's warm-up samples, else a synthetic one from the handler."""

import hashlib
from collections.abc import Sequence
from typing import Any

from tsctl.handlers import wire
from tsctl.handlers.requests.rows import decode_rows
from tsctl.handlers.requests.sample import SampleRequest

CHECKED_ROWS = 2  # enough to detect rows that leak into each other


def archive_rows(samples: Sequence[SampleRequest]) -> list[dict[str, Any]]:
    """Return the archive's warm-up samples as rows for `preprocess`."""
    return decode_rows([wire.Row("optimize", [], [("body", each.content_type, each.body)]) for each in samples])


def digest_of(samples: Sequence[SampleRequest]) -> str:
    """Return a SHA-256 of the samples' contents; empty for none."""
    digest = hashlib.sha256()
    for each in samples:
        digest.update(f"{each.content_type} {len(each.body)}\n".encode() + each.body)
    return digest.hexdigest() if samples else ""


def made_up_rows(handler: Any) -> list[dict[str, Any]]:
    """Return the row that a handler makes up, if it can.

    For the case that the handler fails on a sample: for example, `preprocess` never sees one in a service envelope.
    """
    made_up = getattr(handler, "example", None)
    return [] if made_up is None else [{"body": made_up()}]
