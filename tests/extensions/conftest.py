"""The fixtures of tests/e2e, for the tests of extensions on a real daemon: those in files named test_served….py."""

import pytest

from tests.e2e.conftest import daemon_without_tracebacks as daemon_without_tracebacks
from tests.e2e.conftest import idle as idle
from tests.e2e.conftest import mark_real
from tests.e2e.conftest import served as served
from tests.e2e.conftest import shared as shared


# Before pytest selects tests by their markers.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_real(
        item for item in items if "/tests/extensions/" in str(item.path) and item.path.name.startswith("test_served")
    )
