"""`tsctl apply`, `export` and `rollback`: the daemon tells what was asked for each version, now and before.

service   the route of that; its document is a library's (registrations), which other extensions use, too

The rest is the command line's (tsctl/extensions/apply), with the core's commands. The state of a model before its
latest change is the snapshot's (daemon/models/persistence/snapshot_file.py).
"""

from tsctl.daemon.declarations import Operations
from tsctl.daemon.extension import Extension, Kernel, Service


class ApplyExtension(Extension):
    name = "apply"

    def operations(self, *, own: bool) -> Operations:
        from tsctl.daemon.extensions.registrations.document import OPERATIONS

        return OPERATIONS if own else {}

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.apply.service import ApplyService

        return ApplyService(kernel.registry, kernel.registrar.ledger)
