"""External changes to a run's daemon: its operators' commands, and events of the machine."""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from tests.lab.simulation.clients import Clients
from tests.lab.simulation.loop import Late
from tests.lab.simulation.script import SIGKILL
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.registrar import no_progress
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.version import ModelVersion

if TYPE_CHECKING:
    import asyncio

    from tests.lab.simulation.world import World


class Operators:
    """All changes to one world's daemon, by the events of its plan.

    Attributes:
        commands: the unfinished ones.
    """

    def __init__(self, world: "World", clients: Clients) -> None:
        self.commands: set[asyncio.Task[None]] = set()
        self._world = world
        self._clients = clients
        for name, version, _ in world.plan.models:
            self._register(name, version)
        for at, what in world.plan.events:
            world.loop.outside(at, self._happens, what)

    def _happens(self, what: str) -> None:
        if not self._world.healed:
            getattr(self, f"_{what}")()

    # Events of the machine.

    def _kill(self) -> None:
        world = self._world
        alive = [process for process in world.processes if not process.stopped and process.born]
        busy = [process for process in alive if process.script.busy]
        if alive:
            victims = busy if busy and world.chance.random() < 0.6 else alive
            world.chance.choice(victims).die(world.chance.choice((SIGKILL, SIGKILL, 1)))

    def _stall(self) -> None:
        chance = self._world.chance
        seconds = chance.choice((0.002, 0.02, 0.15, 0.5, 3.0))
        self._world.note("the loop stalls for %g s", seconds)
        self._world.loop.stall(seconds, chance.choice(list(Late)))

    def _disk(self) -> None:
        self._world.disk_full_until = self._world.loop.now() + self._world.chance.choice((0.05, 0.5))

    def _leave(self) -> None:
        waiting = [entry for entry in self._world.entries.values() if entry.reply is None and not entry.left]
        if waiting:
            self._clients.leave(self._world.chance.choice(waiting))

    # Commands of operators.

    def _any(self) -> ModelVersion | None:
        models = list(self._world.registry)
        return self._world.chance.choice(models) if models else None

    def _scale(self) -> None:
        model, chance = self._any(), self._world.chance
        if model is not None:
            least = chance.choice((0, 1, 1, 2, 3, 4))
            most = least + chance.choice((0, 0, 1))
            self._do(
                f"scale {model.name}/{model.version} to {least} to {most}",
                self._world.registrar.scale(
                    model, least, most, synchronous=chance.random() < 0.5, progress=no_progress
                ),
            )

    def _set(self) -> None:
        model, chance = self._any(), self._world.chance
        if model is None:
            return
        values: dict[str, tuple[Any, ...]] = {
            "batch_size": (1, 2, 3, 8),
            "max_delay": (0.0, 0.005, 0.1, 0.5),
            "policy": ("auto", "fixed", "greedy"),
            "response_timeout": (0.05, 0.5, 5.0),
            "startup_timeout": (1.0, 5.0),
            "queue_timeout": (0.0, 0.05, 0.5),
            "queue_jobs": (1, 5, 100),
        }
        names = chance.sample(list(values), k=chance.choice((1, 1, 2, 4)))
        asked = {name: chance.choice(values[name]) for name in names}
        self._do(f"set {model.name}/{model.version} {asked}", self._change(model, asked))

    async def _change(self, model: ModelVersion, asked: dict[str, Any]) -> None:
        self._world.served_of(model).timeouts.add(asked.get("response_timeout", model.settings.response_timeout))
        change_settings(model, asked)
        await self._world.registrar.ledger.save()

    def _unregister(self) -> None:
        name, version, _ = self._world.chance.choice(self._world.plan.models)
        which = version if self._world.chance.random() < 0.7 else None
        self._do(f"unregister {name}/{which}", self._world.registrar.unregister(name, which))

    def _register(self, name: str = "", version: str = "") -> None:
        chance, replace = self._world.chance, False
        if not name:
            name, version, _ = chance.choice(self._world.plan.models)
            replace = chance.random() < 0.5
        synchronous = chance.random() < 0.5
        request = Registration(url=f"{name}/{version}", synchronous=synchronous)
        self._do(
            f"{'replace' if replace else 'register'} {name}/{version}{', and wait' if synchronous else ''}",
            self._world.registrar.register(request, replace=replace),
        )

    def _retry(self) -> None:
        model = self._any()
        if model is not None:
            synchronous = self._world.chance.random() < 0.5
            self._do(
                f"retry {model.name}/{model.version}",
                self._world.registrar.retry(model, synchronous=synchronous, progress=no_progress),
            )

    def _default(self) -> None:
        name, version, _ = self._world.chance.choice(self._world.plan.models)
        self._do(f"default {name}/{version}", self._world.registrar.set_default(name, version))

    def _do(self, text: str, command: Coroutine[Any, Any, Any]) -> None:
        task = self._world.loop.create_task(self._tell(text, command))
        self.commands.add(task)
        task.add_done_callback(self.commands.discard)

    async def _tell(self, text: str, command: Coroutine[Any, Any, Any]) -> None:
        world = self._world
        world.note("operator: %s", text)
        try:
            await command
        except DaemonError as error:
            world.note("operator: %s: %s", text, str(error).partition("\n")[0])
        except Exception as error:  # noqa: BLE001 - any error is a bug
            world.loop.call_exception_handler({"exception": error})
        else:
            world.note("operator: %s: done", text)
