"""`POST /models/MODEL/VERSION/load`, `/unload`, `/restart`, `/retry`: an operator's commands on a version's workers."""

from typing import Any

from tsctl.daemon.api.management.commands import LATER, Command, Parameters
from tsctl.daemon.core.errors import Conflict
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.models.change import check_files
from tsctl.daemon.models.registrar import Progress, Registrar
from tsctl.daemon.models.version import ModelVersion

RETRY, LOAD, UNLOAD, RESTART = ACTIONS = ("retry", "load", "unload", "restart")
_DONE = {RETRY: "tried again", LOAD: "loaded", RESTART: "restarted"}


def loading_command(model: ModelVersion, registrar: Registrar, exchange: Exchange, action: str) -> Command:
    """Return the command of an action; by query `synchronous`, true by default: wait until the workers are ready."""
    synchronous = Parameters(exchange.request).flag("synchronous", True)
    named = f'Model "{model.name}" Version: {model.version}'

    async def command(progress: Progress) -> tuple[int, Any]:
        served = model
        if action == UNLOAD:
            await registrar.unload(model)
            return 200, {"status": f"{named} unloaded; no request loads it"}
        if action == RESTART:
            if not model.pool.wanted:
                raise Conflict(model.name, model.version, f"{named} has no workers to restart.")
            check_files(model)
            served = await registrar.renew(model, "the same version", progress, synchronous=synchronous)
        elif action == RETRY:
            await registrar.retry(model, synchronous=synchronous, progress=progress)
        else:
            await registrar.load(model, synchronous=synchronous, progress=progress)
        if not synchronous:
            return LATER
        workers = f"{served.pool.ready} of {served.pool.wanted} workers ready"
        return 200, {"status": f"{named} {_DONE[action]}, {workers}"}

    return command
