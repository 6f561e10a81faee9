"""The daemon as one watches it: its numbers, its batches as they form, its events as they happen.

counts     all versions, in one document
batches    the latest batches of one version
streams    the events, each when it is added
"""

from tsctl.daemon.declarations import Operations
from tsctl.daemon.extension import Extension, Kernel, Service


class LiveExtension(Extension):
    name = "live"

    def operations(self, *, own: bool) -> Operations:
        from tsctl.daemon.extensions.live.counts import OPERATIONS

        return OPERATIONS if own else {}

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.live.counts import LiveService

        return LiveService(kernel.registry, kernel.fields, kernel.gpus, kernel.observation.events, kernel.clock)
