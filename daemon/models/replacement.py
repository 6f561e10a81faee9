"""A replacement: another archive that takes the place of a registered version.

    LOADING ──its workers are ready──▶ it is the version now, and the old one finishes its requests
       └─────failed, or stopped─────▶ FAILED: the old version serves on, and shows the error

While a replacement is LOADING, no other change of its version is accepted: the change would be lost together
with the old version. Such a request is answered 409.
"""

from dataclasses import dataclass

from tsctl.daemon.workers.pool import Pool


@dataclass(slots=True)
class Replacement:
    """The latest attempt to replace a version.

    Attributes:
        url: the archive, as the registration named it.
        pool: the workers that load the archive, beside those that serve; None after a failure.
        error: the reason of the failure: a sentence, an empty line, the traceback; empty while loading.
    """

    url: str
    pool: Pool | None
    error: str = ""

    @property
    def state(self) -> str:
        return "loading" if self.pool is not None else "failed"

    @property
    def ready(self) -> int:
        return 0 if self.pool is None else self.pool.ready

    @property
    def wanted(self) -> int:
        return 0 if self.pool is None else self.pool.wanted
