"""Change the settings of a serving version: no worker is restarted, and no request is lost.

`MODEL_SETTINGS` (`changes`) names when each change takes effect. A running worker's handler finds a new batch size in
`context.system_properties`; values that `initialize` derived from the old one stay until the worker is replaced. A
batch that is held for a delay is reconsidered, and its delay counts from the start of its wait.

After any change, quarantined requests are accepted again.

Other settings are fixed when a worker starts: handler, GPUs, Python environment, warm-up, whether its requests may
run again. Changing those takes a registration. The number of workers has its own command, `scale`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.models.admission import stopping_error
from tsctl.daemon.models.replace import check_unclaimed
from tsctl.daemon.models.settings import check
from tsctl.daemon.models.version import ModelVersion


def check_files(model: ModelVersion) -> None:
    """Raise BadRequest if the model's files are gone."""
    if model.lost:
        raise BadRequest(f"The files of {model.name}/{model.version} are gone; register it again.")


def check_changeable(model: ModelVersion) -> None:
    """Check that an operator may load, unload or scale a version.

    Raises:
        BadRequest: the version's files are gone.
        BeingReplaced: a replacement is loading, and the change would be lost.
        Stopping: the version is being stopped.
    """
    check_unclaimed(model)
    if model.stopping:
        raise stopping_error(model)
    check_files(model)


def change_settings(model: ModelVersion, asked: Mapping[str, Any]) -> None:
    """Apply settings to a version, and add them to its request, so that the snapshot keeps them.

    Args:
        asked: settings that can be changed → values, as in ModelSettings.

    Raises:
        BadRequest: a value is outside its limits, or more than the model's file takes, or the files are gone; nothing
            is changed.
        BeingReplaced: a replacement is loading, and the change would be lost.
    """
    check_unclaimed(model)
    check_files(model)
    check(asked)
    size = asked.get("batch_size", 0)
    if model.most_rows and size > model.most_rows:
        raise BadRequest(
            f"The batch size is to be {size}, and the model's file takes at most {model.most_rows} rows at a time:"
            " export it with a dynamic first dimension."
        )
    model.request = replace(model.request, overrides=model.request.overrides.changed(asked, "set"))
    model.reports.add("settings-changed", f"set {', '.join(f'{name} {value}' for name, value in asked.items())}")
    model.change(model.settings.changed(asked, "set"))
