"""`PATCH /models/MODEL[/VERSION]`: change how a version is served, while it serves.

By query or JSON object: the parameters of `MODEL_SETTINGS` that can be changed. The answer has each setting's
value before and after, under its name in `model-config.yaml` and in that file's units.
"""

from collections.abc import Mapping
from typing import Any

from daemon.api.describe import settings_of
from daemon.api.parameters import Parameters
from daemon.errors import BadRequest
from daemon.model_settings import MODEL_SETTINGS, ModelSetting
from daemon.models.model import Model
from daemon.models.setting import change_settings

CHANGEABLE: Mapping[str, ModelSetting] = {row.rest: row for row in MODEL_SETTINGS if row.changes}
_ELSE = "Workers are scaled with PUT; anything else takes a new registration."


def asked_of(given: Parameters) -> dict[str, Any]:
    """Read what is to be changed: settings → values.

    Raises:
        BadRequest: nothing, or something that cannot be changed, or not to that.
    """
    for name in given.names:
        if name not in CHANGEABLE:
            why = next((row.why for row in MODEL_SETTINGS if row.rest == name), _ELSE)
            raise BadRequest(
                f"{name} cannot be changed while the model is served. What can: {', '.join(CHANGEABLE)}. {why}"
            )
    values = {row.name: given.setting(row) for row in CHANGEABLE.values()}
    asked = {name: value for name, value in values.items() if value is not None}
    if not asked:
        raise BadRequest(f"Nothing is to be changed. What can be: {', '.join(CHANGEABLE)}.")
    return asked


def change(model: Model, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Change it; the document that answers.

    Raises:
        BadRequest: nothing is changed.
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
