"""The daemon's numbers as they change, and its batches as they form, for those who watch: `tsctl top`, the console.

counts     all versions, in one document
batches    the latest batches of one version
"""

from tsctl.daemon.extension import Extension, Kernel, Service


class LiveExtension(Extension):
    name = "live"

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.live.counts import LiveService

        return LiveService(kernel.registry, kernel.fields)
