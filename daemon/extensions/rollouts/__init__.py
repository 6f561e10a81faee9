"""New versions that take over step by step, and go back by themselves."""

from tsctl.daemon.extension import Extension, Kernel, Service


class RolloutsExtension(Extension):
    name = "rollouts"

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.rollouts.service import RolloutsService

        return RolloutsService(kernel)
