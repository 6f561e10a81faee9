"""One mutant against the tests that reach its module, in a forked process of its own."""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import signal
import sys
import tempfile
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.lab.mutants.changes import Mutant

# A mutant that loops, or waits, for ever is killed, too; processor time, as others may work on the machine.
LOOPS = 20  # seconds of processor time: for the module's own tests, and beyond twice what all unchanged tests took
WAITS = 60  # seconds beyond twice what they took
# What tests import from elsewhere, once for all mutants; none of it starts a thread.
_LIBRARIES = ("hypothesis", "msgspec", "numpy", "httptools", "uvloop", "prometheus_client", "yaml", "click", "rich")


def prepare() -> None:
    """Import the libraries into this process, of which each mutant's is a fork."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    # As tests/conftest.py, but a failing example kills, however large it is.
    settings.register_profile(
        "mutants",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        phases=[Phase.explicit, Phase.generate],
        report_multiple_bugs=False,
    )


class Usual(NamedTuple):
    """The seconds that the tests take with the module as it is: of the clock, and of the processor."""

    wall: float
    processor: float


def unchanged(module: str, tests: Sequence[str]) -> Usual | None:
    """Run the tests with the module as it is; return None if one fails."""
    source = Path(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    began = time.monotonic()
    _, status, used = os.wait4(_fork(module, source, tests, None), 0)
    return None if status else Usual(time.monotonic() - began, used.ru_utime + used.ru_stime)


def survivors(module: str, mutants: Sequence[Mutant], tests: Sequence[str], at_once: int, usual: Usual) -> list[Mutant]:
    """Return the mutants with which all tests pass.

    Args:
        module: its dotted name; nothing may have imported it in this process.
        at_once: how many run at the same time.
        usual: what `unchanged` returned for these tests.
    """
    assert module not in sys.modules
    waiting, running, alive = list(mutants), dict[int, Mutant](), []
    while waiting or running:
        while waiting and len(running) < at_once:
            mutant = waiting.pop(0)
            running[_fork(module, mutant.changed(), tests, usual)] = mutant
        ended, status = os.wait()
        mutant = running.pop(ended)
        if status == 0:
            alive.append(mutant)
    return sorted(alive, key=lambda each: each.line)


def _fork(module: str, source: str, tests: Sequence[str], usual: Usual | None) -> int:
    child = os.fork()
    if not child:
        os._exit(_run(module, source, tests, usual))
    return child


def _run(module: str, source: str, tests: Sequence[str], usual: Usual | None) -> int:
    os.setsid()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process
    signal.alarm(0 if usual is None else int(2 * usual.wall) + WAITS)
    silent = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silent, descriptor)
    changed = _Changed(module, source)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        options = "-x -q -p no:cacheprovider -p no:xdist --hypothesis-seed=0 --hypothesis-profile=mutants"
        early = "ignore::pytest.PytestAssertRewriteWarning"  # hypothesis is imported by `prepare`
        common = [*options.split(), "-W", early, "--basetemp", f"{folder}/made"]
        own, *reaching = tests
        try:
            if usual is not None:
                _limit_processor(LOOPS)
            # Its own tests kill most mutants; those that reach it take seconds to be collected.
            if failed := pytest.main([*common, own], plugins=[changed]):
                return int(failed)
            if usual is not None:
                _limit_processor(int(2 * usual.processor) + LOOPS)
            return int(pytest.main([*common, f"--ignore={own}", *reaching], plugins=[changed]))
        except SystemExit:  # of a module that no longer works
            return 1


def _limit_processor(seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the module in a text."""

    def __init__(self, module: str, source: str) -> None:
        self._module, self._source = module, source

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        """Come before pytest's own finder, which takes what it may rewrite."""
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._module:
            return None
        return importlib.util.spec_from_loader(name, self, origin=str(Path(*name.split(".")).with_suffix(".py")))

    def exec_module(self, module: types.ModuleType) -> None:
        # As from its file: by the path, tracebacks tell our frames from a handler's.
        file = Path(*self._module.split(".")).with_suffix(".py").absolute()
        exec(compile(self._source, str(file), "exec"), module.__dict__)
