"""Prints docs/model-settings.md, the reference of a model's settings, from their table (`make references`)."""

from daemon.model_settings import MODEL_SETTINGS, ModelSetting
from daemon.model_settings.kinds import Boolean

_HEAD = """# Settings of a model

Printed by `make references` from the table in `daemon/model_settings/table.py`; a test keeps it fresh.

Of what is said of a setting, the first of these counts: `tsctl set` (or `PATCH /models/MODEL`), `tsctl register` (or
`POST /models`), the archive's `model-config.yaml`, the `models` block of config.properties, the daemon's own setting,
the default. `tsctl config MODEL` prints each value, and who said so.

| `model-config.yaml` | option of `register` | parameter of `POST` | value | default | while it serves |
|---|---|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    lines = [_line(row) for row in MODEL_SETTINGS]
    described = [f"* **{row.label or row.rest}** ({_names(row)}): {row.help} {_counts(row)}" for row in MODEL_SETTINGS]
    return _HEAD + "\n".join(lines) + "\n\n" + "\n".join(described) + "\n"


def _line(row: ModelSetting) -> str:
    option = row.flag and f"`{row.flag}`" + (f", `--no-{row.flag[2:]}`" if isinstance(row.kind, Boolean) else "")
    cells = [_code(row.yaml), option, _code(row.rest), _value(row), _default(row), "yes" if row.changes else "no"]
    return f"| {' | '.join(cells)} |"


def _value(row: ModelSetting) -> str:
    """Return what a value may be, with the unit where it is not in the words."""
    said = row.kind.what.partition(";")[0]
    units = {"ms": "milliseconds", "s": "seconds"}
    unit = units.get(row.kind.unit, "")
    if unit and unit not in said:
        said = f"{said}, {unit}"
    return said if row.yaml_kind is None else f"{said}; in `model-config.yaml` {units[row.yaml_kind.unit]}"


def _default(row: ModelSetting) -> str:
    if row.daemon:
        return f"the daemon's `--{row.daemon.replace('_', '-')}`"
    value = None if row.default is None else row.kind.show(row.default)
    if value is None:
        return "see below"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _names(row: ModelSetting) -> str:
    return ", ".join(_code(name) for name in (row.yaml, row.flag, row.rest) if name)


def _counts(row: ModelSetting) -> str:
    return f"A change counts {row.changes}." if row.changes else row.why


def _code(text: str) -> str:
    return text and f"`{text}`"


if __name__ == "__main__":
    print(page(), end="")
