"""The fixtures of tests/e2e, for the tests of extensions on a real daemon."""

from tests.e2e.conftest import daemon_without_tracebacks as daemon_without_tracebacks
from tests.e2e.conftest import idle as idle
from tests.e2e.conftest import served as served
from tests.e2e.conftest import shared as shared
