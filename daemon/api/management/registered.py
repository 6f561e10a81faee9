"""The document that ends a registration with `warnings=true` (a parameter of ours), beside TorchServe's sentence.

    modelName, modelVersion, handler
    batchSize, maxBatchDelay, batching   in force now; milliseconds
    notes                                sentences for the model's author, the worker's and those on model-config.yaml
    replaced                             whether the registration replaces a version that was registered
    changed                              the settings that a replacement changed: setting, before, after
    kept                                 the settings that a replacement kept, because they were asked for earlier
    mostRows                             that the model's file takes at a time; 0 for any number
    alone                                whether the handler's function is called for one request after the other
    workers, onDemand                    its worker processes; whether the first request starts them

Settings have their names and units of model-config.yaml.
"""

from typing import Any

from tsctl.daemon.api.management.describe import settings_of, shown_settings
from tsctl.daemon.models.archives.model_yaml import misspelt
from tsctl.daemon.models.settings import ROWS
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.wire import Declared


def registered(model: ModelVersion) -> dict[str, Any]:
    """Return the document of a version that was registered, or is being loaded."""
    before, settings = model.before, model.settings
    return {
        "modelName": model.name,
        "modelVersion": model.version,
        "handler": model.source.manifest.handler,
        "batchSize": settings.batch_size,
        "maxBatchDelay": round(settings.max_delay * 1000, 3),
        "batching": settings.policy,
        "notes": [*misspelt(model.source.document), *model.notes],
        "replaced": before is not None,
        "changed": [] if before is None else _changed(shown_settings(vars(before.settings)), settings_of(model)),
        "kept": [] if before is None else [ROWS[name].yaml for name in before.kept if ROWS[name].yaml],
        "mostRows": model.most_rows,
        "alone": _alone(model.declared),
        "workers": model.pool.wanted,
        "onDemand": model.presence.comes,
    }


def _alone(declared: Declared | None) -> bool:
    return declared is not None and not (declared.batches or declared.waits or declared.streams)


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"setting": name, "before": value, "after": after[name]}
        for name, value in before.items()
        if value != after[name]
    ]
