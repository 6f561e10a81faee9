"""A house without models, and for files named test_served….py, which have a real daemon, the fixtures of tests/e2e."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import daemon_without_tracebacks as daemon_without_tracebacks
from tests.e2e.conftest import idle as idle
from tests.e2e.conftest import mark_real
from tests.e2e.conftest import served as served
from tests.e2e.conftest import shared as shared

if TYPE_CHECKING:
    from tests.api.house import House


@pytest.fixture
def house(tmp_path: Path) -> "House":
    from tests.api.house import House  # here: most files need none of the daemon that it imports

    return House(tmp_path)


# Before pytest selects tests by their markers.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_real(
        item for item in items if "/tests/extensions/" in str(item.path) and item.path.name.startswith("test_served")
    )
