"""The type of the table's rows."""

from dataclasses import dataclass
from typing import Any

from tsctl.daemon.model_settings.kinds import ValueKind

OF_HANDLER = "Only the archive can set this, because its handler is written for it."  # a row's `why`


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSetting:
    """One value that a registration, an archive or an operator may choose for a model version.

    Attributes:
        kind: the limits of the value, and how to read and show it.
        help: a sentence for the user.
        label: the setting's name within a sentence.
        yaml: the key in model-config.yaml; empty if an archive cannot set the value.
        rest: the parameter of `POST /models`, and of `PATCH` if changeable; empty if there is none.
        flag: the option of `tsctl register` and `tsctl set`; empty if there is none.
        group: the title above the option in the help.
        yaml_kind: the kind in model-config.yaml, if the unit differs there.
        default: None if the daemon works out the value (see `help`).
        daemon: the daemon's setting that holds the default; empty if `default` does.
        zero_is_unsaid: whether 0 in model-config.yaml, or in the daemon's setting, means "not set", as in TorchServe.
        changes: when a change takes effect, if the version can go on serving; else empty.
        worker: the field of `tsctl.handlers.wire.Load` in which a worker is told the value; empty for none.
        only_with: the key in model-config.yaml without which the setting has no effect; empty for none.
        members: of a mapping: those that have an effect.
        why: why the setting is missing at some of the borders.
    """

    name: str
    kind: ValueKind
    help: str
    label: str = ""
    yaml: str = ""
    rest: str = ""
    flag: str = ""
    group: str = ""
    yaml_kind: ValueKind | None = None
    default: Any = None
    daemon: str = ""
    zero_is_unsaid: bool = False
    changes: str = ""
    worker: str = ""
    only_with: str = ""
    members: tuple[str, ...] = ()
    why: str = ""

    @property
    def written(self) -> ValueKind:
        """Return the kind in model-config.yaml; descriptions of a model use the same names and units."""
        return self.yaml_kind or self.kind
