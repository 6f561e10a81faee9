"""The rows of the comparison of batching policies in which batches are formed by length."""

from typing import Any

from tsctl.daemon.extensions.grouping.grouping import LengthGrouping

OF_TEXTS: tuple[str, dict[str, Any]] = ("the same, grouped by length", {"choice": LengthGrouping})
