"""The last 15 minutes of each version, so that a chart does not begin when somebody looks.

course    one version: a ring of samples, made from counts that rise; pure
"""

from tsctl.daemon.declarations import Operations
from tsctl.daemon.extension import Extension, Kernel, Service


class HistoryExtension(Extension):
    name = "history"

    def operations(self, *, own: bool) -> Operations:
        from tsctl.daemon.extensions.history.course import OPERATIONS

        return OPERATIONS if own else {}

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.history.course import HistoryService

        return HistoryService(kernel.registry, kernel.clock)
