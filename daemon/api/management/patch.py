"""`PATCH /models/MODEL[/VERSION]`: change settings of a version while it serves.

By query or JSON object: the changeable parameters of `MODEL_SETTINGS`. The answer holds each setting's value
before and after, under its name in `model-config.yaml` and in that file's units.
"""

from collections.abc import Mapping
from typing import Any

from tsctl.daemon.api.management.commands import Parameters
from tsctl.daemon.api.management.describe import settings_of
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.model_settings import ModelSetting
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.tables import MODEL_SETTINGS

CHANGEABLE: Mapping[str, ModelSetting] = {row.rest: row for row in MODEL_SETTINGS if row.changes}
_ELSE = "Scale workers with PUT; other settings take a new registration."


def asked_of(given: Parameters) -> dict[str, Any]:
    """Return the requested changes: settings → values.

    Raises:
        BadRequest: no change is requested, a setting cannot be changed, or a value is invalid.
    """
    for name in given.names:
        if name not in CHANGEABLE:
            why = next((row.why for row in MODEL_SETTINGS if row.rest == name), _ELSE)
            raise BadRequest(
                f"{name} cannot be changed while the model serves. Changeable: {', '.join(CHANGEABLE)}. {why}"
            )
    values = {row.name: given.read(row.rest, row.kind) for row in CHANGEABLE.values()}
    asked = {name: value for name, value in values.items() if value is not None}
    if not asked:
        raise BadRequest(f"No change is requested. Changeable: {', '.join(CHANGEABLE)}.")
    return asked


def change(model: ModelVersion, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Change settings of a version; return the document of the answer.

    Raises:
        BadRequest: a value is not possible; no setting was changed.
    """
    before = settings_of(model)
    change_settings(model, asked)
    after = settings_of(model)
    changes = [
        {"name": row.yaml, "from": before[row.yaml], "to": after[row.yaml]}
        for row in CHANGEABLE.values()
        if row.name in asked
    ]
    told = ", ".join(f"{each['name']} from {_text(each['from'])} to {_text(each['to'])}" for each in changes)
    return {
        "status": f'Model "{model.name}" Version: {model.version} changed: {told}',
        "modelName": model.name,
        "modelVersion": model.version,
        "changes": changes,
    }


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
