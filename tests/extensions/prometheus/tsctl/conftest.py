"""The fixtures of tests/tsctl."""

from tests.tsctl.conftest import daemon as daemon
from tests.tsctl.conftest import invoke as invoke
from tests.tsctl.conftest import own_places as own_places
