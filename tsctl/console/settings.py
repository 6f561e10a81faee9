"""The settings that the page can change, for its form: from the table that the daemon and `tsctl set` use."""

from typing import Any

from tsctl.daemon.model_settings.kinds import Boolean, Choice
from tsctl.daemon.tables import MODEL_SETTINGS

_SECONDS = {"ms": 0.001, "s": 1.0}


def settings_document() -> list[dict[str, Any]]:
    """Return for each changeable setting its names at the borders, its kind and a sentence for people.

    `factor` converts a number of a describe document to the unit of the option.
    """
    return [
        {
            "yaml": row.yaml,
            "rest": row.rest,
            "flag": row.flag,
            "label": row.label or row.yaml,
            "unit": row.kind.unit,
            "help": row.help,
            "changes": row.changes,
            "choices": list(row.kind.words) if isinstance(row.kind, Choice) else None,
            "boolean": isinstance(row.kind, Boolean),
            "factor": _SECONDS.get(row.written.unit, 1.0) / _SECONDS.get(row.kind.unit, 1.0),
        }
        for row in MODEL_SETTINGS
        if row.changes and row.flag
    ]
