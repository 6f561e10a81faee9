"""Changing how a version is served, while it serves: no worker starts anew, and nothing is lost.

When each change counts is in `MODEL_SETTINGS` (`changes`). A running worker's handler finds a new batch size in
`context.system_properties`; what it made of the old one in `initialize` stays until the worker is replaced. A batch
that is held for a delay is looked at anew, and has been held since its wait began.

Whatever is changed, requests that were refused because the same had ended workers are run again.

The rest cannot be changed under a running worker, which is made of it: handler, GPUs, Python environment,
warm-up, whether its requests may run again. That takes a registration. The number of workers has its own
command, `scale`.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from daemon.errors import BadRequest
from daemon.models.model import Model
from daemon.models.modelconfig import check
from daemon.models.replacing import check_unclaimed

_log = logging.getLogger("daemon.models")


def change_settings(model: Model, asked: Mapping[str, Any]) -> None:
    """Serve a version by other settings from now on, and wish so for the next run.

    Args:
        asked: settings that can be changed → values, as in ModelSettings.

    Raises:
        BadRequest: a value is impossible, or nothing is left to serve. Nothing is changed.
        BeingReplaced: it would be lost.
    """
    check_unclaimed(model)
    if model.lost:
        raise BadRequest(f"{model.name}/{model.version} has no files to be served from; register it again.")
    check(asked)
    model.request = replace(model.request, wishes=model.request.wishes.changed(asked, "set"))
    model.change(model.settings.changed(asked, "set"))
    _log.info(
        "set %s of %s/%s", ", ".join(f"{name} {value}" for name, value in asked.items()), model.name, model.version
    )
