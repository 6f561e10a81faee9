"""`GET /models/MODEL?customized=true`: the describe document with the metadata that the handler itself reports.

metadata   the route, and the job that asks the handler
"""

from tsctl.daemon.declarations import Operations
from tsctl.daemon.extension import Extension, Kernel, Service


class CustomizedExtension(Extension):
    name = "customized"

    def operations(self, *, own: bool) -> Operations:
        from tsctl.daemon.extensions.customized.metadata import OPERATIONS

        return {} if own else OPERATIONS

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.customized.metadata import CustomizedService

        return CustomizedService(kernel.registry, kernel.fields)
