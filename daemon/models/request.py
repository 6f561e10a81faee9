"""The request of a registration: from a client, from the list of models to load, or from the snapshot."""

from dataclasses import dataclass, field

from tsctl.daemon.models.settings import Overrides


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A registration. The snapshot keeps it, so a new field needs a default.

    Attributes:
        url: a name in the model store, an absolute path, or a URL that the operator allows.
        model_version: the version that the archive must contain; None for any.
        sha256: the SHA-256 that the archive must have, as 64 hexadecimal digits; empty for any.
        local_paths: whether a path outside the store is allowed.
        synchronous: whether to wait until every worker is ready.
        held: an operator unloaded the version: no request loads it.
        ephemeral: never written to the snapshot, so that a restart does not serve the version; an upgrade keeps it.
        owner: a random token of the program that registers; empty for none. See registering/ownership.py.
        owner_pid: the process whose end unregisters the owner's versions; 0 for none. See registering/owner_watch.py.
    """

    url: str
    model_name: str | None = None
    model_version: str | None = None
    sha256: str = ""
    handler: str | None = None
    runtime: str | None = None
    overrides: Overrides = field(default_factory=Overrides)
    synchronous: bool = True
    local_paths: bool = False
    held: bool = False
    ephemeral: bool = False
    owner: str = ""
    owner_pid: int = 0
