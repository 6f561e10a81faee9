"""A replacement: another archive that is to take the place of a registered version.

    LOADING ──its workers are ready──▶ it is the version now, and the old one finishes what it has
       └─────failed, or stopped─────▶ FAILED: the version serves on as it was, and tells why

While one is LOADING, nothing else may change its version: two changes at once would leave one of
them on a version that is about to go. Whoever asks is told so, with 409.
"""

from dataclasses import dataclass
from enum import Enum

from daemon.workers.pool import Pool


class ReplacementState(Enum):
    LOADING = "loading"
    FAILED = "failed"


@dataclass(slots=True)
class Replacement:
    """The latest attempt to replace a version.

    Attributes:
        url: the archive, as the registration named it.
        pool: the workers that load it, beside those that serve; None when it has failed.
        error: why it failed: a sentence, an empty line, the traceback; empty while it is loading.
    """

    url: str
    pool: Pool | None
    error: str = ""

    @property
    def state(self) -> ReplacementState:
        return ReplacementState.LOADING if self.pool is not None else ReplacementState.FAILED

    @property
    def ready(self) -> int:
        return 0 if self.pool is None else self.pool.ready

    @property
    def wanted(self) -> int:
        return 0 if self.pool is None else self.pool.wanted
