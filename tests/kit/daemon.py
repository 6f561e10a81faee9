"""A registration over stub workers on a real loop, on which nothing takes longer than a turn."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from tests.kit.archives import model_files, write_mar
from tests.kit.build import make_config
from tests.kit.client import Client
from tests.kit.in_loop import InLoop
from tests.kit.stub import StubEngine
from tsctl.daemon import paths
from tsctl.daemon.core.clock import LoopClock
from tsctl.daemon.core.logs import ModelLogs
from tsctl.daemon.models.persistence.snapshot import SnapshotEntry, read_snapshot
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.models.registrar import Registrar, Registration
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.models.version import ModelVersion

NEVER = 1e6  # seconds; a load or a batch that the test ends itself


class StubDaemon:
    """A registration over stub workers on the running loop, with a model store.

    Args:
        root: its state is there, and may be that of an earlier daemon that is no more.
        flags: of the configuration, as on the command line.
    """

    def __init__(self, root: Path, **flags: str) -> None:
        self.root = root
        self.store = root / "store"
        self.store.mkdir(exist_ok=True)
        config = make_config(root, **{"model_store": str(self.store)} | flags)
        paths.logs_dir(config.state_dir).mkdir(parents=True, exist_ok=True)
        clock = LoopClock(asyncio.get_running_loop())
        self.engine: StubEngine = StubEngine(clock)
        self.registry = Registry()
        self.logs = ModelLogs(partial(paths.model_log, config.state_dir), foreground=False)
        self.models_dir = paths.models_dir(config.state_dir)
        self.snapshot = paths.snapshot(config.state_dir)
        self.config = config
        self.client = Client()
        self.use(self.engine)
        self.registrar.clean()

    def use(self, engine: StubEngine) -> None:
        self.engine = engine
        self.registrar = Registrar(self.config, self.registry, engine, engine.clock, self.logs)

    def mar(self, name: str = "m", version: str = "1.0", **model: Any) -> str:
        url = f"{name}-{version}.mar"
        write_mar(self.store / url, model_files(name, version, **model))
        return url

    async def register(self, url: str, *, workers: int | None = 1, **request: Any) -> ModelVersion:
        return await self.registrar.register(Registration(url=url, overrides=Overrides(workers=workers), **request))

    async def start(self) -> None:
        """Bring up what is to be served from the start, as the daemon does."""
        startup = Startup(self.config, self.registry, self.registrar)
        startup.restore()
        await startup.load()

    async def restart(self, **flags: str) -> Self:
        """Return a new daemon with the same state, as if this one had been killed."""
        bench = type(self)(self.root, **flags)
        await bench.start()
        return bench

    @property
    def remembered(self) -> dict[str, SnapshotEntry]:
        """The file on the disk: `MODEL/VERSION` → entry."""
        kept = read_snapshot(self.snapshot)
        return {} if kept is None else {f"{entry.name}/{entry.version}": entry for entry in kept.models}

    @property
    def names(self) -> list[str]:
        return [f"{model.name}/{model.version}" for model in self.registry]

    @property
    def unpacked(self) -> int:
        return len(list(self.models_dir.iterdir()))


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until something is true."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what tests wait for has no event
            await asyncio.sleep(0)


@pytest.fixture
def bench(tmp_path: Path) -> InLoop:
    """A registration over stub workers, on the loop of the test."""
    return InLoop(partial(StubDaemon, tmp_path))
