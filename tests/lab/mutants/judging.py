"""Mutants against the tests that reach them, each in a fork of one process that has collected all of these tests.

A mutant is a change within one function: the fork gives that function, which everybody has imported already, the code
of the changed one. So nothing is imported or collected anew, and only files are run whose tests enter the function.
"""

import ast
import contextlib
import gc
import importlib
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.lab.mutants.changes import Mutant, first_line, outermost

# A mutant that loops, or waits, for ever is killed, too: after so many times what a test takes without any change …
TIMES = 10
LOOPS = 5.0  # … and these seconds of processor time, as others may work on the machine
WAITS = 15.0  # … and these seconds
PROFILE = "mutants"
_ENTERED = "__entered__"  # the global name of the functions that a test has entered
_OF_FUNCTION = 1  # inspect.CO_OPTIMIZED: the code of a function, not of a class
Codes = Mapping[int, CodeType]  # of a module's functions, by their first lines


def register_profile() -> None:
    """Set hypothesis as tests/conftest.py does, but a failing example kills, however large it is."""
    settings.register_profile(
        PROFILE,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
        phases=[Phase.explicit, Phase.generate],
        report_multiple_bugs=False,
    )


class Usual(NamedTuple):
    """One test without any change.

    Attributes:
        cpu, wall: seconds.
        entered, made: functions of the modules, by module and first line, that were entered in all, and before the
            test itself, by fixtures that others may share.
    """

    passed: bool
    cpu: float
    wall: float
    entered: frozenset[tuple[str, int]]
    made: frozenset[tuple[str, int]]


class Judging:
    """A plugin of pytest that calls `judge` in place of running the tests, when all are collected.

    Args:
        modules: their dotted names.
    """

    def __init__(self, modules: Sequence[str], judge: Callable[["Judging"], None]) -> None:
        self._modules = modules
        self._judge = judge
        self._failed = False
        self._entered, self._made = set[tuple[str, int]](), frozenset[tuple[str, int]]()
        self._items: list[pytest.Item] = []
        self._usual: list[Usual] = []
        self._files: defaultdict[str, list[int]] = defaultdict(list)  # the indices of a file's tests
        self._functions: defaultdict[str, list[FunctionType]] = defaultdict(list)  # by module

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        self._made = frozenset(self._entered)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        assert threading.active_count() == 1, threading.enumerate()
        self._items = session.items
        for index, item in enumerate(session.items):
            self._files[item.nodeid.partition("::")[0]].append(index)
        names = {str(importlib.import_module(name).__file__): name for name in self._modules}
        gc.unfreeze()  # what conftest.py has frozen is not among the objects
        for each in gc.get_objects():
            if type(each) is FunctionType and each.__code__.co_filename in names:
                self._functions[names[each.__code__.co_filename]].append(each)
        gc.freeze()
        self._note_usual()
        self._judge(self)
        return True

    def survivors(self, module: str, mutants: Sequence[Mutant], own: str, at_once: int) -> Iterator[Mutant]:
        """Yield the mutants with which all tests pass.

        Args:
            own: the module's own tests, a file or folder: they kill most, and run first.
            at_once: how many run at the same time.
        """
        waiting, running = list(mutants), dict[int, Mutant]()
        while waiting or running:
            while waiting and len(running) < at_once:
                mutant = waiting.pop(0)
                running[_fork(lambda each=mutant: self._run_changed(module, each, own))] = mutant  # type: ignore[misc]
            ended, status = os.wait()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(ended, signal.SIGKILL)  # what its tests have started
            mutant = running.pop(ended)
            if status == 0:
                yield mutant

    def _note_usual(self) -> None:
        """Run all tests once without any change, and note which functions each of them enters.

        One that fails judges no mutant: it is named, and left out.
        """
        with tempfile.NamedTemporaryFile() as told:
            path = Path(told.name)
            os.waitpid(_fork(lambda: path.write_bytes(pickle.dumps([*self._run_noting()]))), 0)
            self._usual = pickle.loads(path.read_bytes())
        for index, usual in enumerate(self._usual):
            if not usual.passed:
                name = self._items[index].nodeid
                self._files[name.partition("::")[0]].remove(index)
                print(f"left out, as it fails without any change: {name}", flush=True)

    def _run_noting(self) -> Iterator[Usual]:
        for name in self._modules:
            sys.modules[name].__dict__[_ENTERED] = self._entered
            self._exchange(name, codes_of(noting(name), name))
        for index in range(len(self._items)):
            cpu, wall = time.process_time(), time.monotonic()
            passed = self._run_one(index, index + 1)
            took = time.process_time() - cpu, time.monotonic() - wall
            yield Usual(passed, *took, frozenset(self._entered), self._made)
            self._entered.clear()

    def _run_changed(self, module: str, mutant: Mutant, own: str) -> None:
        """Run the tests that reach a mutant; the first that fails ends this process."""
        codes = codes_of(mutant.changed(), module)
        line = max(line for line in codes if line <= mutant.line)
        self._exchange(module, {line: codes[line]})
        tests = self._reaching((module, line), own)
        for index, following in zip(tests, [*tests[1:], len(self._items)], strict=False):
            usual = self._usual[index]
            signal.setitimer(signal.ITIMER_PROF, TIMES * usual.cpu + LOOPS)
            signal.setitimer(signal.ITIMER_REAL, TIMES * usual.wall + WAITS)
            if not self._run_one(index, following):
                os._exit(1)

    def _reaching(self, function: tuple[str, int], own: str) -> list[int]:
        """Return the tests that enter a function: its own first, then of the files that take the least time.

        Where a fixture enters it, all tests of the file count: what it has made, others look at.
        """
        found = dict[str, list[int]]()
        for file, tests in self._files.items():
            if any(function in self._usual[each].made for each in tests):
                found[file] = tests
            elif entering := [each for each in tests if function in self._usual[each].entered]:
                found[file] = entering

        def order(file: str) -> tuple[bool, float]:
            return not file.startswith(own), sum(self._usual[each].cpu for each in found[file])

        return [index for file in sorted(found, key=order) for index in found[file]]

    def _run_one(self, index: int, following: int) -> bool:
        """Run a test; `following` is the next one, for which fixtures stay."""
        self._failed = False
        item, after = self._items[index], self._items[following] if following < len(self._items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        return not self._failed

    def _exchange(self, module: str, codes: Codes) -> None:
        """Give functions of a module other code."""
        for function in self._functions[module]:
            code = codes.get(function.__code__.co_firstlineno)
            if code is not None and function.__code__.co_name == code.co_name:
                function.__code__ = code


def noting(module: str) -> ast.Module:
    """Return a module's tree, whose functions note that they are entered."""
    tree = ast.parse(Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8"))
    for function in outermost(tree):
        function.body.insert(0, *ast.parse(f"{_ENTERED}.add(({module!r}, {first_line(function)}))").body)
    return ast.fix_missing_locations(tree)


def codes_of(tree: ast.Module, module: str) -> Codes:
    """Return the code of the functions of a module and its classes: as of its file, by which tracebacks are told."""

    def within(code: CodeType) -> Iterator[CodeType]:
        for each in code.co_consts:
            if isinstance(each, CodeType) and each.co_flags & _OF_FUNCTION and not each.co_name.startswith("<"):
                yield each
            elif isinstance(each, CodeType) and not each.co_flags & _OF_FUNCTION:
                yield from within(each)

    file = str(sys.modules[module].__file__)
    return {code.co_firstlineno: code for code in within(compile(tree, file, "exec", dont_inherit=True))}


def _fork(run: Callable[[], object]) -> int:
    """Run a function in a process of its own, whose exit code is 0 if it returns; return its id."""
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        for number in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(number, signal.SIG_DFL)  # which ends the process
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silent, descriptor)
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PYTEST_DEBUG_TEMPROOT"] = folder  # where pytest makes its folders
            run()
    except BaseException:  # noqa: BLE001 - also SystemExit
        os._exit(1)
    os._exit(0)
