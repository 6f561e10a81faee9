"""One mutant against the tests that reach its module, in a forked process of its own."""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.lab.mutants.changes import Mutant

LIMIT = 300  # seconds of a mutant's tests: one that loops for ever is killed, too
# What tests import from elsewhere, once for all mutants; none of it starts a thread.
_LIBRARIES = ("hypothesis", "msgspec", "numpy", "httptools", "uvloop", "prometheus_client", "yaml", "click", "rich")


def prepare() -> None:
    """Import the libraries into this process, of which each mutant's is a fork."""
    for name in _LIBRARIES:
        importlib.import_module(name)


def survivors(module: str, mutants: Sequence[Mutant], tests: Sequence[str], at_once: int) -> list[Mutant]:
    """Return the mutants with which all tests pass.

    Args:
        module: its dotted name; nothing may have imported it in this process.
        at_once: how many run at the same time.
    """
    assert module not in sys.modules
    waiting, running, alive = list(mutants), dict[int, Mutant](), []
    while waiting or running:
        while waiting and len(running) < at_once:
            mutant = waiting.pop(0)
            child = os.fork()
            if not child:
                os._exit(_run(module, mutant.source, tests))
            running[child] = mutant
        ended, status = os.wait()
        mutant = running.pop(ended)
        if os.waitstatus_to_exitcode(status) == 0:
            alive.append(mutant)
    return sorted(alive, key=lambda each: each.line)


def _run(module: str, source: str, tests: Sequence[str]) -> int:
    os.setsid()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LIMIT)  # its default ends the process
    silent = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silent, descriptor)
    sys.meta_path.insert(0, _Changed(module, source))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        options = "-x -q -p no:cacheprovider -p no:xdist --hypothesis-seed=0"
        early = "ignore::pytest.PytestAssertRewriteWarning"  # hypothesis is imported by `prepare`
        try:
            return int(pytest.main([*options.split(), "-W", early, "--basetemp", f"{folder}/made", *tests]))
        except SystemExit:  # of a module that no longer works
            return 1


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the module in a text."""

    def __init__(self, module: str, source: str) -> None:
        self._module, self._source = module, source

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._module:
            return None
        return importlib.util.spec_from_loader(name, self, origin=str(Path(*name.split(".")).with_suffix(".py")))

    def exec_module(self, module: types.ModuleType) -> None:
        exec(compile(self._source, self._module, "exec"), module.__dict__)
