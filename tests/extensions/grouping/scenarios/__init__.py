"""A version that groups requests by length and has learned its batch times, for scenarios."""

from tests.extensions.grouping.test_service import version

bench = version
