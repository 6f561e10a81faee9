"""The settings that a replacement keeps.

    asked for in the request                          wins
    asked for at the registration, `set`, scaled      kept, also if the new archive has another value
    of model-config.yaml, the daemon, the defaults    read again, from the new archive

So nothing that was chosen for a version is lost when its archive is replaced; `reset` (`register --replace --reset`)
begins with the request alone. Without any chosen number of workers, the present number is the fallback. The handler,
the name and the runtime belong to the archive, and are not kept.
"""

from dataclasses import replace

from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.settings import Overrides, SettingsBefore
from tsctl.daemon.models.version import ModelVersion


def keep(request: Registration, old: ModelVersion) -> Registration:
    """Return the request with the values that were asked for the old version, where the request asks for none."""
    asked, before = request.overrides, old.request.overrides
    values = {name: before.said[name] for name in before.said if _is_kept(name, asked)} | asked.said
    if old.min_workers:
        values["fallback_workers"] = old.min_workers
    since = {name: command for name, command in before.since.items() if _is_kept(name, asked)}
    return replace(request, overrides=Overrides(since=since, **values))


def before_replacement(request: Registration, old: ModelVersion, *, reset: bool) -> SettingsBefore:
    """Return the old version's settings, and which of them `keep` keeps."""
    workers = {"workers": old.min_workers, "max_workers": old.max_workers}
    kept = () if reset else [name for name in old.request.overrides.said if _is_kept(name, request.overrides)]
    return SettingsBefore(old.settings.changed(workers, "register"), tuple(kept))


def _is_kept(name: str, asked: Overrides) -> bool:
    if name == "max_workers":  # the largest number belongs to the least number: `tsctl scale` sets both
        return asked.workers is None
    return name not in asked.said
