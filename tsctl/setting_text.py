"""A model's setting as text for people: the daemon's documents name settings and units as model-config.yaml does."""

from typing import Any

from tsctl.daemon.tables import MODEL_SETTINGS

NO_NAMES = ","  # a list without a member, as a parameter of a request: an empty text is no parameter
_OPTIMIZE = "optimize"
_ROWS = {row.yaml: row for row in MODEL_SETTINGS}


def setting_name(name: str) -> str:
    """Return the setting's name within a sentence; a setting that only a newer daemon has keeps its key."""
    row = _ROWS.get(name)
    return row.label if row is not None and row.label else name


def setting_unit(name: str) -> str:
    """Return the unit of the setting's option after a space; empty without one."""
    row = _ROWS.get(name)
    return f" {row.kind.unit}" if row is not None and row.kind.unit else ""


def setting_text(name: str, value: Any) -> str:
    """Convert a value from the unit of model-config.yaml to the unit of the option; return the text."""
    row = _ROWS.get(name)
    if isinstance(value, bool):
        return "on" if value else "off"
    if name == _OPTIMIZE and not value:
        return "default"  # `none` is a value, too: not even the handler's own
    if value is None:
        return "none"
    if row is not None and row.yaml_kind is not None:
        value = row.kind.show(row.yaml_kind.read(value))
    if isinstance(value, list):
        return ",".join(map(_member_text, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _member_text(member: Any) -> str:
    """Return a number or text as it is, and a declared tensor as `INPUT0 INT32[-1,16]`."""
    if not isinstance(member, dict):
        return str(member)
    shape = ",".join(map(str, member.get("shape", ())))
    return f"{member.get('name')} {member.get('datatype')}[{shape}]"
