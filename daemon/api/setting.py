"""`PATCH /models/MODEL[/VERSION]`: change how a version is served, while it serves.

By query or JSON object: `batch_size`, `max_batch_delay` (ms), `batching`, `response_timeout`,
`startup_timeout` and `queue_timeout` (s), `job_queue_size`, `record_input`, `quarantine`. The answer tells each
setting's value before and after, under its name in `model-config.yaml` and in that file's units.
"""

from collections.abc import Callable, Mapping
from typing import Any

from daemon.api.describe import settings_of
from daemon.api.parameters import Parameters
from daemon.errors import BadRequest
from daemon.models.model import Model
from daemon.models.setting import change_settings

Reader = Callable[[Parameters, str], Any]

# Parameter → (setting, its JSON type, how its value is read).
PARAMETERS: Mapping[str, tuple[str, str, Reader]] = {
    "batch_size": ("batch_size", "integer", lambda given, name: given.whole(name, least=1, absent=None)),
    "max_batch_delay": ("max_delay", "number", lambda given, name: _seconds(given.number(name, absent=None))),
    "batching": ("policy", "string", lambda given, name: given.text(name)),
    "response_timeout": ("response_timeout", "number", lambda given, name: given.number(name, absent=None)),
    "startup_timeout": ("startup_timeout", "number", lambda given, name: given.number(name, absent=None)),
    "queue_timeout": ("queue_timeout", "number", lambda given, name: given.number(name, absent=None)),
    "job_queue_size": ("queue_jobs", "integer", lambda given, name: given.whole(name, least=1, absent=None)),
    "record_input": ("record_input", "boolean", lambda given, name: given.boolean(name)),
    "quarantine": ("quarantine", "boolean", lambda given, name: given.boolean(name)),
}


def asked_of(given: Parameters) -> dict[str, Any]:
    """Read what is to be changed: settings → values.

    Raises:
        BadRequest: nothing, or something that cannot be changed, or not to that.
    """
    for name in given.names:
        if name not in PARAMETERS:
            raise BadRequest(
                f"{name} cannot be changed while the model is served. What can: {', '.join(PARAMETERS)}."
                " Workers are scaled with PUT; anything else takes a new registration."
            )
    values = {setting: read(given, name) for name, (setting, _, read) in PARAMETERS.items()}
    asked = {setting: value for setting, value in values.items() if value is not None}
    if not asked:
        raise BadRequest(f"Nothing is to be changed. What can be: {', '.join(PARAMETERS)}.")
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
        {"name": after[name][0], "from": before[name][1], "to": after[name][1]} for name in after if name in asked
    ]
    told = ", ".join(f"{each['name']} from {_text(each['from'])} to {_text(each['to'])}" for each in changes)
    return {
        "status": f'Model "{model.name}" Version: {model.version} changed: {told}',
        "modelName": model.name,
        "modelVersion": model.version,
        "changes": changes,
    }


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
