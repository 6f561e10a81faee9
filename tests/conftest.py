"""Options of all tests: their order, and a loop for those that are `async def`."""

import asyncio
import gc
import inspect
import os
import random
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby

import pytest
import uvloop
from hypothesis import HealthCheck, settings

from tests.compiled import touches_compiled
from tests.kit.in_loop import InLoop
from tests.second_run import register_where_asked

# Byte code is kept, whatever the environment says: without it each process that a test starts compiles the program anew
# (a daemon is imported in 0.35 s of processor time instead of 0.78 s), and each process of pytest rewrites all tests.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# grpc's library is for this process alone. Otherwise it starts threads in a child between fork and exec, too, which end
# that child when its descriptors are closed (subprocess with `preexec_fn`).
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

# A property holds however fast the machine is: no example has a deadline, and drawing them may take its time.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", metavar="SEED", help="run files, and the tests in each, in an order drawn from SEED")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until everything is collected: all of it stays
    register_where_asked(config)


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("--shuffle")
    return None if seed is None else f"shuffled: --shuffle {seed} repeats this order"


# What is collected stays: a test that asks for a collection of garbage took a second for each, to look at it again.
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


# Before pytest sorts by the fixtures that tests share, so that those are not made anew for each test.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "compiled" in config.option.markexpr:
        for item in items:
            if touches_compiled(item.path):
                item.add_marker(pytest.mark.compiled)
    seed = config.getoption("--shuffle")
    if seed is not None:
        items[:] = shuffled(items, seed)


# No plugin: no fixture here needs the test's loop, and ten lines keep every test on a new loop that is closed after it.
@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None

    async def on_loop() -> None:
        given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        await pyfuncitem.obj(
            **{name: each.make() if isinstance(each, InLoop) else each for name, each in given.items()}
        )

    run = uvloop.run if pyfuncitem.get_closest_marker("uvloop") else asyncio.run
    run(on_loop())
    return True


def shuffled(items: Iterable[pytest.Item], seed: str) -> list[pytest.Item]:
    """Return the tests in random order, those of a file together. The order depends on nothing but tests and seed."""
    chance = random.Random(seed)
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    chance.shuffle(files)
    for tests in files:
        chance.shuffle(tests)
    return [test for tests in files for test in tests]


@pytest.fixture(autouse=True, scope="module")
def no_garbage(request: pytest.FixtureRequest) -> Iterator[None]:
    """Find what a file has left open in that file, and not in whichever runs when the collector does."""
    yield
    if request.config.getoption("--shuffle") is not None:
        gc.collect()
