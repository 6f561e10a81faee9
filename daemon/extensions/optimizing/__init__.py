"""Faster ways to run each model, tried beside its traffic (`optimize: auto`)."""

from tsctl.daemon.extension import Extension, Kernel, Service


class OptimizingExtension(Extension):
    name = "optimizing"

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.optimizing.service import OptimizingService

        return OptimizingService(kernel)
