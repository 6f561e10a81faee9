"""What a row of the table says."""

from dataclasses import dataclass
from typing import Any

from daemon.model_settings.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSetting:
    """One value that a registration, an archive or an operator may choose for a model version.

    Attributes:
        kind: its limits, and how it is read and shown.
        help: for people; a sentence.
        label: what a sentence calls it.
        yaml: its key in model-config.yaml; empty if an archive cannot say it.
        rest: its parameter of `POST /models`, and of `PATCH` where it can be changed; empty if it has none.
        flag: its option of `tsctl register` and `tsctl set`; empty if it has none.
        yaml_kind: how the archive writes it, where that has another unit.
        default: None means that the daemon works it out (see `help`).
        daemon: the daemon's setting that is the default; empty if `default` is.
        zero_is_unsaid: 0 in model-config.yaml and as the daemon's default says nothing, as in TorchServe.
        changes: when a change counts, if it can be changed while the version serves; else empty.
        why: why it cannot be said at each border.
    """

    name: str
    kind: Kind
    help: str
    label: str = ""
    yaml: str = ""
    rest: str = ""
    flag: str = ""
    yaml_kind: Kind | None = None
    default: Any = None
    daemon: str = ""
    zero_is_unsaid: bool = False
    changes: str = ""
    why: str = ""

    @property
    def written(self) -> Kind:
        """Return how the archive writes it; descriptions of a model use the same names and units."""
        return self.yaml_kind or self.kind
