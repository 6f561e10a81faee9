"""The number of workers of each version that has a target for the time that requests wait."""

from tsctl.daemon.extension import BackgroundService, Extension, Kernel, Service


class ScalingExtension(Extension):
    name = "scaling"

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.models.scaling.autoscaling import Autoscaling

        autoscaling = Autoscaling(kernel.registry, kernel.clock)
        return BackgroundService(autoscaling.begin, close=autoscaling.close)
