"""The settings of one model version, merged from the registration, the archive and the daemon.

A value given at registration (or set since) wins over `model-config.yaml` in the archive, which
wins over the `models` block of config.properties, which wins over the daemon's default. The settings are
the rows of `MODEL_SETTINGS`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from reprlib import Repr
from typing import TYPE_CHECKING, Any

from tsctl.daemon.config.config import Config
from tsctl.daemon.core.errors import BadRequest, InvalidModel, OutOfResources
from tsctl.daemon.core.machine.processes import AvailableMemory
from tsctl.daemon.model_settings import MOST_WORKERS, ModelSetting
from tsctl.daemon.model_settings.resources import cpus_text
from tsctl.daemon.setting_values import size_text
from tsctl.daemon.tables import MODEL_SETTINGS

ROWS: Mapping[str, ModelSetting] = {row.name: row for row in MODEL_SETTINGS}
# The rows that TorchServe's snapshot contains.
_TORCHSERVE = ("batch_size", "max_delay", "workers", "max_workers", "response_timeout", "startup_timeout")


class _Values:
    """Values of rows by name, as attributes; immutable."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        unknown = values.keys() - ROWS.keys()
        if unknown:
            raise TypeError(f"no settings of a model: {', '.join(sorted(unknown))}")
        self.__dict__.update(values)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._said() == other._said()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._said().items())})"

    def _said(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None and name != "origins"}

    if TYPE_CHECKING:  # the attributes are the rows' names

        def __getattr__(self, name: str) -> Any: ...


class ModelSettings(_Values):
    """The settings of a version: the value of every row, times in seconds, sizes in bytes.

    Attributes:
        devices: GPUs that the workers may use, by number, as in WorkerSpec.
        origins: setting → origin of its value; ignored when settings are compared.
    """

    def __init__(
        self,
        *,
        devices: Sequence[int] = (),
        origins: Mapping[str, str] | None = None,
        **values: Any,
    ) -> None:
        """Store the values, and the table's default for each missing row."""
        super().__init__({row.name: row.default for row in MODEL_SETTINGS} | values)
        self.devices = devices
        self.origins = origins or {}

    def changed(self, values: Mapping[str, Any], origin: str) -> "ModelSettings":
        """Return settings with these values changed, and their origin recorded."""
        origins = {**self.origins, **dict.fromkeys(values, origin)}
        return ModelSettings(**{**vars(self), **values, "origins": origins})


class Overrides(_Values):
    """The values that a registration, or a later command, asks for; None for every other row.

    Attributes:
        since: row → the command that asked for the value after the registration: `set` or `scale`.
    """

    def __init__(self, *, since: Mapping[str, str] | None = None, **values: Any) -> None:
        super().__init__(dict.fromkeys(ROWS) | values)
        self.since = since or {}

    @property
    def said(self) -> dict[str, Any]:
        """Return row → value, for the rows that have one."""
        return {name: value for name, value in self._said().items() if name != "since"}

    def changed(self, values: Mapping[str, Any], command: str = "") -> "Overrides":
        """Return overrides with these values changed; `command` names a change after the registration."""
        since = {**self.since, **dict.fromkeys(values if command else (), command)}
        return Overrides(**{**vars(self), **values, "since": since})


@dataclass(frozen=True, slots=True)
class SettingsBefore:
    """The settings of a version that is replaced.

    Attributes:
        settings: of the version; the numbers of workers are those in force.
        kept: the rows whose values the new version keeps because the registration, or a later command, asked for them.
    """

    settings: ModelSettings
    kept: tuple[str, ...] = ()


class _ArchiveValues(dict[str, Any]):
    """The archive's values over those of the `models` block, with their origins."""

    def __init__(self, document: Mapping[str, Any], block: Mapping[str, Any]) -> None:
        self._own = {key for key, value in document.items() if value is not None}
        super().__init__({**block, **{key: document[key] for key in self._own}})

    def source(self, key: str) -> str:
        return "model-config.yaml" if key in self._own else "the models block of config.properties"

    def read(self, row: ModelSetting) -> Any:
        """Read the value of a row; None if there is none.

        Raises:
            InvalidModel: the value has the wrong type or is outside its limits.
        """
        value = self.get(row.yaml) if row.yaml else None
        if value is None:
            return None
        try:
            return row.written.read(value)
        except ValueError as error:
            where = self.source(row.yaml)
            raise InvalidModel(f"{where}: `{row.yaml}` is `{shown(value)}`; expected {error}.") from None


def merge(
    overrides: Overrides,
    document: Mapping[str, Any],
    config: Config,
    block: Mapping[str, Any] | None = None,
    *,
    gpus: int = 0,
) -> ModelSettings:
    """Choose each value: registration, then `model-config.yaml`, then the `models` block, then default.

    Args:
        gpus: the number of GPUs of this machine.

    Raises:
        BadRequest: a value of the registration is outside its limits, or `cpus` names unusable processors.
        InvalidModel: a value of the archive or the block is wrong, or `deviceIds` names a GPU that does not exist.
    """
    asked = overrides.said
    check(asked)
    said = _ArchiveValues(document, block or {})
    values, origins = {}, {}
    for row in MODEL_SETTINGS:
        values[row.name], origins[row.name] = _choose(row, asked, overrides.since, said, config)
    if not values["workers"] and origins["workers"] == "default":
        values["workers"] = values["fallback_workers"]
    # The archive's largest number counts only beside its least number; a registration's beside any.
    written = said.read(ROWS["max_workers"]) if said.read(ROWS["workers"]) and overrides.workers is None else None
    most = written if overrides.max_workers is None else overrides.max_workers
    values["max_workers"] = max(values["workers"], most or 0)
    if overrides.max_workers is None:
        origins["max_workers"] = origins["workers"]
    usable = missing_cpus(values["cpus"])
    if usable is not None:
        raise BadRequest(f"cpus is {cpus_text(values['cpus'])}, but the daemon may only use {usable}.")
    devices = _devices(values["device_type"], values["device_ids"], gpus)
    return ModelSettings(devices=devices, origins=origins, **values)


def _choose(
    row: ModelSetting, asked: Mapping[str, Any], since: Mapping[str, str], said: _ArchiveValues, config: Config
) -> tuple[Any, str]:
    """Return a row's value and its origin."""
    written = said.read(row)
    usual = getattr(config, row.daemon) if row.daemon else None
    if row.zero_is_unsaid:
        written, usual = written or None, usual or None
    if row.name in asked:
        return asked[row.name], since.get(row.name, "register")
    if written is not None:
        return written, said.source(row.yaml)
    if usual is None:
        return row.default, "default"
    origin = config.origins.get(row.daemon, "default")
    return usual, origin if origin == "default" else f"the daemon's {origin}"


def check(values: Mapping[str, Any]) -> None:
    """Raise BadRequest if a value, by its row's name, is outside the limits of its kind."""
    for name, value in values.items():
        row = ROWS[name]
        try:
            row.kind.check(value)
        except ValueError as error:
            text = repr(value) if isinstance(value, str) else shown(row.kind.show(value))
            raise BadRequest(f"{row.rest or name} is {text}; expected {error}.") from None


def check_workers(count: int) -> None:
    """Raise BadRequest if `count` is more than `MOST_WORKERS`."""
    if count > MOST_WORKERS:
        raise BadRequest(f"{count} workers are requested, but a model version may have at most {MOST_WORKERS}.")


def check_room(wanted: int, further: int, each: int, least: AvailableMemory) -> None:
    """Raise OutOfResources if further workers cannot fit into memory, even if they share all that they can.

    Args:
        wanted: the workers that are asked for; `further` of them are not there yet.
        each: bytes that a worker has of its own.
        least: the memory that is left.
    """
    if further * each > least.left:
        raise OutOfResources(
            f"{wanted} workers are requested, and memory has room for {wanted - further + least.left // each}: each has"
            f" {size_text(each)} of its own, and {least.owner} has {size_text(least.left)} left."
        )


def overrides_of(values: Mapping[str, Any]) -> Overrides:
    """Read a version's values in TorchServe's snapshot, where they were given at registration or later.

    Raises:
        InvalidModel: a value has the wrong type or is outside its limits.
    """
    said = _ArchiveValues({}, values)
    return Overrides(**{name: said.read(ROWS[name]) for name in _TORCHSERVE})


def missing_cpus(cpus: Sequence[int]) -> str | None:
    """Return the processors that this process may use, as text, if some of `cpus` are not usable; else None."""
    usable = os.sched_getaffinity(0)
    return None if usable.issuperset(cpus) else cpus_text(tuple(sorted(usable)))


def _devices(kind: str | None, ids: Sequence[int] | None, gpus: int) -> Sequence[int]:
    """Return the GPUs that the archive may use: the named ones, else all; none for `deviceType: cpu`.

    Raises:
        InvalidModel: a named GPU does not exist.
    """
    if kind == "cpu" or not gpus:
        return ()
    if ids and max(ids) >= gpus:
        raise InvalidModel(f"model-config.yaml: `deviceIds` is {ids}, but this machine has GPUs 0 to {gpus - 1}.")
    return tuple(ids or range(gpus))


# With aliases, 300 bytes of YAML are a list of a billion members: the text shown of a value is bounded.
_short = Repr()
_short.maxlevel, _short.maxlist, _short.maxdict, _short.maxset, _short.maxstring = 3, 10, 10, 10, 100
_LONGEST = 200  # characters


def shown(value: Any) -> str:
    """Return a value as text for a sentence, at most 200 characters and an ellipsis."""
    if isinstance(value, int) and abs(value) > 10**100:
        return f"a number of {value.bit_length()} bits"  # Python refuses to print one of more than 4300 digits
    try:
        shown = value if isinstance(value, str) else f"{value:g}" if type(value) is float else _short.repr(value)
    except ValueError:  # the value holds such a number
        return f"a {type(value).__name__}"
    return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"
