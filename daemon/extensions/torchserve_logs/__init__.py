"""TorchServe's log files, metrics modes and snapshots, for scripts that were written for it."""

from tsctl.daemon.extension import Extension, Kernel, Service


class TorchServeLogsExtension(Extension):
    name = "torchserve_logs"

    def install(self, kernel: Kernel) -> Service | None:
        config = kernel.config
        if not config.log_files and config.log_location is None:
            return None
        from tsctl.daemon.extensions.torchserve_logs.service import TorchServeLogsService

        return TorchServeLogsService(kernel)
