"""Prints docs/model-settings.md, the reference of a model's settings, from their table (`python -m tests.lab references`)."""

from docs.generate.markdown import code, table
from tsctl.daemon.model_settings import ModelSetting
from tsctl.daemon.model_settings.kinds import Boolean
from tsctl.daemon.tables import MODEL_SETTINGS

_HEAD = """# Settings of a model

Printed by `python -m tests.lab references` from the table in `daemon/model_settings/table.py`; a test keeps it fresh.

A value has one of these sources, the first wins: `tsctl set` (or `PATCH /models/MODEL`), `tsctl register` (or
`POST /models`), the archive's `model-config.yaml`, the `models` block of config.properties, the daemon's own setting,
the default. `tsctl config MODEL` prints each value and its source.

"""
_COLUMNS = (
    "`model-config.yaml`", "option of `register`", "parameter of `POST`", "value", "default", "changeable while serving"
)  # fmt: skip


def page() -> str:
    """Return the page."""
    described = [f"* **{row.label or row.rest}** ({_names(row)}): {row.help} {_counts(row)}" for row in MODEL_SETTINGS]
    return _HEAD + table(_COLUMNS, map(_cells, MODEL_SETTINGS)) + "\n" + "\n".join(described) + "\n"


def _cells(row: ModelSetting) -> list[str]:
    option = row.flag and f"`{row.flag}`" + (f", `--no-{row.flag[2:]}`" if isinstance(row.kind, Boolean) else "")
    return [code(row.yaml), option, code(row.rest), _value(row), _default(row), "yes" if row.changes else "no"]


def _value(row: ModelSetting) -> str:
    """Return a description of valid values, with the unit if the description lacks one."""
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
    return ", ".join(code(name) for name in (row.yaml, row.flag, row.rest) if name)


def _counts(row: ModelSetting) -> str:
    return f"A change counts {row.changes}." if row.changes else row.why


if __name__ == "__main__":
    print(page(), end="")
