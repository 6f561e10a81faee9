"""One sentence on a version: whether its workers keep up with what comes, and which command helps.

verdict   the sentence, of the last minute's facts; pure
"""

from tsctl.daemon.extension import Extension, Kernel, Service


class VerdictExtension(Extension):
    name = "verdict"

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.verdict.verdict import VerdictService

        return VerdictService(kernel.registry)
