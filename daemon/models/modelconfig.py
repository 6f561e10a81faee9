"""How one model version is served: what the registration, the archive and the daemon say.

A value given at registration (or set since) wins over `model-config.yaml` in the archive, which
wins over the `models` block of config.properties, which wins over the daemon's default. The settings are
the rows of `MODEL_SETTINGS`.
"""

import os
from collections.abc import Mapping, Sequence
from reprlib import Repr
from typing import TYPE_CHECKING, Any

from daemon.config import Config
from daemon.errors import BadRequest, InvalidModel
from daemon.model_settings import MODEL_SETTINGS, MOST_WORKERS, ModelSetting
from daemon.model_settings.kinds import Duration
from daemon.model_settings.resources import cpus_text

ROWS: Mapping[str, ModelSetting] = {row.name: row for row in MODEL_SETTINGS}
# 0 was accepted by earlier versions.
TIMEOUTS = tuple(row for row in MODEL_SETTINGS if isinstance(row.kind, Duration) and row.kind.positive)
# What TorchServe's snapshot says of a version.
_TORCHSERVE = ("batch_size", "max_delay", "workers", "max_workers", "response_timeout", "startup_timeout")


class _Values:
    """Values of rows by name, as attributes; never changed."""

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

    if TYPE_CHECKING:  # the names are those of the table

        def __getattr__(self, name: str) -> Any: ...


class ModelSettings(_Values):
    """How a version is served: the value of every row, times in seconds, sizes in bytes.

    Attributes:
        devices: GPUs that its workers may use, by number, as in WorkerSpec.
        origins: setting → who said so; equal settings may have different ones.
    """

    def __init__(self, *, devices: Sequence[int] = (), origins: Mapping[str, str] | None = None, **values: Any) -> None:
        """Take the default of the table for what is not among the values."""
        super().__init__({row.name: row.default for row in MODEL_SETTINGS} | values)
        self.devices = devices
        self.origins = origins or {}

    def changed(self, values: Mapping[str, Any], origin: str) -> "ModelSettings":
        """Return settings with other values, which `origin` said."""
        origins = {**self.origins, **dict.fromkeys(values, origin)}
        return ModelSettings(**{**vars(self), **values, "origins": origins})


class Wishes(_Values):
    """What a registration asks for, or somebody since; None where nobody says anything.

    Attributes:
        since: those that were asked for after the registration, with the command: `set` or `scale`.
    """

    def __init__(self, *, since: Mapping[str, str] | None = None, **values: Any) -> None:
        super().__init__(dict.fromkeys(ROWS) | values)
        self.since = since or {}

    @property
    def said(self) -> dict[str, Any]:
        """Return row → value, for the rows of which somebody says something."""
        return {name: value for name, value in self._said().items() if name != "since"}

    def changed(self, values: Mapping[str, Any], command: str = "") -> "Wishes":
        """Return wishes with other values; a command means that they were asked for since."""
        since = {**self.since, **dict.fromkeys(values if command else (), command)}
        return Wishes(**{**vars(self), **values, "since": since})


class _Said(dict[str, Any]):
    """What the archive says, over what the `models` block says; and who said it."""

    def __init__(self, document: Mapping[str, Any], block: Mapping[str, Any]) -> None:
        self._own = {key for key, value in document.items() if value is not None}
        super().__init__({**block, **{key: document[key] for key in self._own}})

    def source(self, key: str) -> str:
        return "model-config.yaml" if key in self._own else "the models block of config.properties"

    def read(self, row: ModelSetting) -> Any:
        """Read the value of a row; None if nobody says it.

        Raises:
            InvalidModel: it is not what it should be.
        """
        value = self.get(row.yaml) if row.yaml else None
        if value is None:
            return None
        try:
            return row.written.read(value)
        except ValueError as error:
            where = self.source(row.yaml)
            raise InvalidModel(f"{where}: `{row.yaml}` is `{shown(value)}`, and should be {error}.") from None


def merge(
    wishes: Wishes,
    document: Mapping[str, Any],
    config: Config,
    block: Mapping[str, Any] | None = None,
    *,
    gpus: int = 0,
) -> ModelSettings:
    """Choose each value: registration, then `model-config.yaml`, then the `models` block, then default.

    Args:
        gpus: how many this machine has.

    Raises:
        BadRequest: the registration asks for something impossible.
        InvalidModel: the archive or the block does.
    """
    asked = wishes.said
    check(asked)
    said = _Said(document, block or {})
    values, origins = {}, {}
    for row in MODEL_SETTINGS:
        values[row.name], origins[row.name] = _choose(row, asked, wishes.since, said, config)
    if not values["workers"] and origins["workers"] == "default":
        values["workers"] = values["fallback_workers"]
    # The largest number counts only beside a least one, from where that comes.
    written = said.read(ROWS["max_workers"]) if said.read(ROWS["workers"]) else None
    most = written if wishes.workers is None else wishes.max_workers
    values["max_workers"], origins["max_workers"] = max(values["workers"], most or 0), origins["workers"]
    usable = missing_cpus(values["cpus"])
    if usable is not None:
        raise BadRequest(f"cpus is {cpus_text(values['cpus'])}, and the daemon may use {usable}.")
    return ModelSettings(devices=_devices(values["device_type"], values["device_ids"], gpus), origins=origins, **values)


def _choose(
    row: ModelSetting, asked: Mapping[str, Any], since: Mapping[str, str], said: _Said, config: Config
) -> tuple[Any, str]:
    """Return a row's value, and who said so."""
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
    """Raises: BadRequest, if a value, by its row's name, is outside the limits of its kind."""
    for name, value in values.items():
        row = ROWS[name]
        try:
            row.kind.check(value)
        except ValueError as error:
            text = repr(value) if isinstance(value, str) else shown(row.kind.show(value))
            raise BadRequest(f"{row.rest or name} is {text}, and should be {error}.") from None


def check_workers(count: int) -> None:
    """Raises: BadRequest, if nobody can mean so many."""
    if count > MOST_WORKERS:
        raise BadRequest(f"{count} workers are wanted, and a model version may have {MOST_WORKERS}.")


def wishes_of(values: Mapping[str, Any]) -> Wishes:
    """Read what TorchServe's snapshot says of a version: it had been asked for at registering, or since.

    Raises:
        InvalidModel: a value is not what it should be.
    """
    said = _Said({}, values)
    return Wishes(**{name: said.read(ROWS[name]) for name in _TORCHSERVE})


def without_zero_timeouts(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Leave out timeouts of 0, which earlier versions accepted; return the rest, and the names of those."""
    names = [name for row in TIMEOUTS for name in (row.name, row.yaml)]
    dropped = [name for name in names if name in values and values[name] == 0]
    return {name: value for name, value in values.items() if name not in dropped}, dropped


def missing_cpus(cpus: Sequence[int]) -> str | None:
    """Return which processors this process may use, if some of `cpus` are not among them."""
    usable = os.sched_getaffinity(0)
    return None if usable.issuperset(cpus) else cpus_text(tuple(sorted(usable)))


def _devices(kind: str | None, ids: Sequence[int] | None, gpus: int) -> Sequence[int]:
    """The GPUs that the archive may use: those it names, else all; none where there are none."""
    if kind == "cpu" or not gpus:
        return ()
    if ids and max(ids) >= gpus:
        raise InvalidModel(f"model-config.yaml: `deviceIds` is {ids}, and the GPUs here are 0 to {gpus - 1}.")
    return tuple(ids or range(gpus))


# By aliases, 300 bytes of YAML are a list of a billion members: what is shown of a value has an end.
_short = Repr()
_short.maxlevel, _short.maxlist, _short.maxdict, _short.maxset, _short.maxstring = 3, 10, 10, 10, 100
_LONGEST = 200  # characters


def shown(value: Any) -> str:
    """Write a value into a sentence, shortened."""
    if isinstance(value, int) and abs(value) > 10**100:
        return f"a number of {value.bit_length()} bits"  # Python does not even write one of 4300 digits
    try:
        shown = value if isinstance(value, str) else f"{value:g}" if type(value) is float else _short.repr(value)
    except ValueError:  # it holds such a number
        return f"a {type(value).__name__}"
    return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"
