"""A test of real processes that failed runs once more, alone, where CI asks for it; its name is told if it passes then.

Other programs have a part in such a test, and a change that has nothing to do with it must not be refused for them.
Nothing else gets a second run: a test without processes depends on nothing but the code.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

VARIABLE = (
    "TSCTL_UNSTEADY"  # in the environment: the file to which names of tests are added that passed at the second run
)
MOST = 5  # tests; if more fail, it is no accident
_PATIENCE = 1500.0  # seconds: more than pytest allows a test


class SecondRun:
    """A plugin of pytest.

    Args:
        passes: runs a test alone; returns whether it passes.
    """

    def __init__(self, unsteady: Path, passes: Callable[[str], bool]) -> None:
        self._unsteady = unsteady
        self._passes = passes
        self._failed: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            # The report of a test that ended its process has no keywords.
            real = report.nodeid.startswith("tests/e2e/") or "slow" in report.keywords
            self._failed[report.nodeid] = real

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        yield  # all other tests have ended, and those that failed are told
        if session.exitstatus != pytest.ExitCode.TESTS_FAILED or not self.may_pass(self._failed):
            return
        if all(self._passes_now(name) for name in self._failed):
            session.exitstatus = pytest.ExitCode.OK

    @staticmethod
    def may_pass(failed: dict[str, bool]) -> bool:
        """Return whether these tests get a second run: all are of real processes, and they are few."""
        return 0 < len(failed) <= MOST and all(failed.values())

    def _passes_now(self, name: str) -> bool:
        passed = self._passes(name)
        if passed:
            with self._unsteady.open("a") as file:
                print(f"unsteady: {name}", file=file)
        return passed


def passes_alone(name: str) -> bool:
    """Run a test alone; return whether it passes."""
    print(f"\nonce more, alone: {name}", flush=True)
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    command = [sys.executable, "-m", "pytest", "-m", "", "-p", "no:cacheprovider", name]
    try:
        return subprocess.run(command, env=environment, timeout=_PATIENCE).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def register_where_asked(config: pytest.Config) -> None:
    """Register the plugin in the process that knows of all tests, if the environment asks for it."""
    unsteady = os.environ.get(VARIABLE)
    if unsteady and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SecondRun(Path(unsteady), passes_alone))
