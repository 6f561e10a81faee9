"""An operator's commands: load a version now, or unload it and keep it so."""

from dataclasses import replace

from tsctl.daemon.core.errors import Stopping
from tsctl.daemon.models.archives.opening import Progress
from tsctl.daemon.models.change import check_files
from tsctl.daemon.models.persistence.ledger import Ledger
from tsctl.daemon.models.presence import all_ready
from tsctl.daemon.models.replace import check_unclaimed
from tsctl.daemon.models.version import ModelVersion


async def load(model: ModelVersion, ledger: Ledger, *, synchronous: bool, progress: Progress) -> None:
    """Load a version with its workers, at least one; a loaded one stays as it is.

    Args:
        synchronous: wait until the workers are ready.

    Raises:
        BadRequest: the version's files are gone.
        BeingReplaced: a replacement is loading, and the change would be lost.
        Stopping: the version is being stopped.
        NotRemembered: the version is loaded, but the snapshot could not be written.
        WorkersFailed: a worker could not load the model.
    """
    _check(model)
    model.request = replace(model.request, held=False)
    if not model.presence.most:
        workers = max(1, model.settings.workers)
        overrides = model.request.overrides.changed({"workers": workers, "max_workers": workers}, "scale")
        model.request = replace(model.request, overrides=overrides)
        model.scale(workers, max(workers, model.settings.max_workers))
    elif not model.pool.ready:
        model.presence.resume("loaded by an operator")
    model.reports.add("loading", "loaded by an operator")
    await ledger.remember(model)
    if synchronous:
        await all_ready(model, model.pool.wanted, progress)


async def unload(model: ModelVersion, ledger: Ledger) -> None:
    """Unload a version; it stays registered, keeps its number of workers, and no request loads it.

    Its running requests finish, and those that wait are refused.

    Raises:
        BadRequest: the version's files are gone.
        BeingReplaced: a replacement is loading, and the change would be lost.
        Stopping: the version is being stopped.
        NotRemembered: the version is unloaded, but the snapshot could not be written.
    """
    _check(model)
    model.request = replace(model.request, held=True)
    if not model.presence.ended:
        model.presence.end("unloaded by an operator")
        model.reports.add("unloaded", "unloaded by an operator")
    await ledger.remember(model)


def _check(model: ModelVersion) -> None:
    check_unclaimed(model)
    if model.stopping:
        raise Stopping(f'Model "{model.name}" version {model.version} is being stopped.')
    check_files(model)
