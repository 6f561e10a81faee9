"""Changing how a version is served, while it serves: no worker starts anew, and nothing is lost.

    batch_size        from the next batch on. A running worker's handler finds it in `context.system_properties`;
                      what it made of the old one in `initialize` stays until the worker is replaced
    max_delay, policy from the next decision on; what is held is looked at anew, and has been held since then
    response_timeout  from the next batch on
    startup_timeout   for workers that start from now on
    queue_timeout     for what waits already, too; 0 for ever
    queue_jobs        from the next request on; what waits beyond it is served
    record_input      from the next request on; off forgets what was kept
    quarantine        from the next request on

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
from daemon.models.limits import check_timeouts
from daemon.models.model import Model
from daemon.models.modelconfig import check_policy
from daemon.models.replacing import check_unclaimed

_log = logging.getLogger("daemon.models")


def change_settings(model: Model, asked: Mapping[str, Any]) -> None:
    """Serve a version by other settings from now on, and wish so for the next run.

    Args:
        asked: settings of the table above → values, as in ModelSettings.

    Raises:
        BadRequest: a value is impossible, or nothing is left to serve. Nothing is changed.
        BeingReplaced: it would be lost.
    """
    check_unclaimed(model)
    if model.lost:
        raise BadRequest(f"{model.name}/{model.version} has no files to be served from; register it again.")
    check_timeouts(asked)
    if "policy" in asked:
        check_policy(asked["policy"])
    wishes, settings = model.request.wishes, model.settings
    wishes = replace(wishes, **asked, since={**wishes.since, **dict.fromkeys(asked, "set")})
    model.request = replace(model.request, wishes=wishes)
    model.change(replace(settings, **asked, origins={**settings.origins, **dict.fromkeys(asked, "set")}))
    _log.info(
        "set %s of %s/%s", ", ".join(f"{name} {value}" for name, value in asked.items()), model.name, model.version
    )
