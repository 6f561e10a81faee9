"""The daemon's configuration: the values of the table of settings, each with its origin."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsctl.daemon import paths
from tsctl.daemon.config.metrics_file import DeclaredMetric, MetricsFile, read_metrics_file
from tsctl.daemon.config.properties import ConfigFile, ModelValues, PropertyValue, read_config_file
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.setting_values import MIB, Setting
from tsctl.daemon.tables import SETTINGS

MANAGEMENT_VARIABLE = "TSCTL_TOKEN"
INFERENCE_VARIABLE = "TSCTL_INFERENCE_TOKEN"


class Config:
    """The operator's configuration: the values of the rows of `SETTINGS`, as attributes; in seconds, and in bytes.

    Attributes:
        origins: setting → "flag", "environment", "file …" or "default".
        models_block: the values of model versions in the `models` block of config.properties.
        snapshot_block: of the models that TorchServe had registered.
        metrics_file: the content of `metrics_config`.
        notes: sentences about the keys of config.properties that are not obeyed.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        origins: Mapping[str, str],
        models_block: ModelValues,
        snapshot_block: ModelValues,
        metrics_file: MetricsFile | None,
        notes: tuple[str, ...],
    ) -> None:
        self.__dict__.update(values)
        self.origins, self.notes = origins, notes
        self.models_block, self.snapshot_block = models_block, snapshot_block
        self.metrics_file = metrics_file

    if TYPE_CHECKING:  # the attributes are the rows' names

        def __getattr__(self, name: str) -> Any: ...

    @property
    def model_metrics(self) -> tuple[DeclaredMetric, ...]:
        """The metrics that `metrics_config` declares for handlers."""
        return () if self.metrics_file is None else self.metrics_file.model_metrics


def resolve(flags: Mapping[str, str | None], environment: Mapping[str, str], directory: Path | None = None) -> Config:
    """Choose each setting's value: flag, then environment, then config.properties, then default.

    Args:
        directory: the operator's working directory: if no file is named, a config.properties there is not read, but
            mentioned in a note.

    Raises:
        StartError: a value is invalid, or a path cannot be used.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    places: dict[str, str] = {}
    file = _read_file(flags, environment)
    for setting in SETTINGS:
        given = _said(setting, flags, environment) or file.settings.get(setting.name)
        if given is None:
            values[setting.name], origins[setting.name] = setting.default, "default"
        else:
            values[setting.name], origins[setting.name] = _parsed(setting, given), given.origin
            places[setting.name] = given.where
    values["socket"] = values["socket"] or paths.default_socket()
    _take_unix_addresses(values, places)
    try:
        values["state_dir"] = values["state_dir"] or paths.default_state_dir()
    except paths.PathError as error:
        raise StartError(str(error), "name a directory with `--state-dir`") from None
    values["max_receiving_bytes"] = _receiving(values["max_receiving_bytes"], values["max_request_size"])
    store = values["model_store"]
    if store is not None and not _is_directory(store):
        raise StartError(f"no model store at `{store}`", "make the directory, or name another with `--model-store`")
    declared = values["metrics_config"]
    metrics_file = None if declared is None else read_metrics_file(declared, places["metrics_config"])
    token = has_management_token(values, environment)
    notes, values["worker_variables"] = file.notes, {}
    for extension in EXTENSIONS:
        keys, before = file.keys_of(extension), dict(values)
        notes += (*extension.configure(values, keys, environment),)
        if keys:  # which have set those of its settings that are other than before
            own = (row.name for row in extension.settings)
            origins |= {name: "file" for name in own if values[name] != before[name]}
    unread = directory / "config.properties" if directory is not None and values["ts_config"] is None else None
    if unread is not None and unread.is_file():
        # torchserve reads this file. Anyone who can write to the directory where `tsctl` is started could choose
        # the code that runs and who may register models: the note names the file, and the operator decides.
        sentence = "`config.properties` of this directory is not read; `--ts-config config.properties` reads it"
        notes += (f"note: {sentence}",)
    inference, management = values["inference_address"], values["management_address"]
    if management is not None and values["enable_model_api"] is None and not token:
        why = "no token is asked for there; `--enable-model-api` lets every client do so, which can run code here"
        notes += (f"note: models are not registered or unregistered at {management}, but on the control socket: {why}",)
    if values["cors_allowed_origin"] and inference == management:
        why = "it also takes management commands, which no web page may send; give those an address of their own"
        notes += (f"warning: `cors_allowed_origin` has no effect on {inference}: {why}",)
    return Config(values, origins, file.models, file.snapshot, metrics_file, notes)


def has_management_token(values: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    """Return whether the operator has set a management token (tokens.py reads it).

    Args:
        values: by the names of settings.
    """
    return values["token_file"] is not None or bool(environment.get(MANAGEMENT_VARIABLE))


def _take_unix_addresses(values: dict[str, Any], places: Mapping[str, str]) -> None:
    """Replace each address that is the control socket, as TorchServe writes it: `unix:PATH`.

    Raises:
        StartError: an address is another Unix socket.
    """
    for name, nothing in (("inference_address", "none"), ("management_address", None), ("metrics_address", None)):
        text = values[name]
        if text is None or not text.lower().startswith("unix:"):
            continue
        path = text[len("unix:") :].removeprefix("//")
        if Path(path) != values["socket"]:
            raise StartError(
                f"{places[name]}: `{text}`: the one Unix socket is the control socket, and it is `{values['socket']}`;"
                " it serves predictions, management and metrics, to this user alone",
                f"add `--socket {path}`, and set TSCTL_SOCKET to that for the other commands, or write HOST:PORT",
            )
        values[name] = nothing


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long for one, say
        return False


def _receiving(chosen: int | None, largest: int) -> int:
    """Return the limit of bytes of all bodies that are received at once.

    Raises:
        StartError: the chosen limit is smaller than the largest body.
    """
    if chosen is None:
        return max(512 * MIB, 2 * largest)
    if chosen < largest:
        raise StartError(
            f"`max_receiving_bytes` is {chosen}, less than `max_request_size`, {largest} bytes",
            "raise `--max-receiving-bytes`, or lower `--max-request-size`",
        )
    return chosen


def _said(setting: Setting, flags: Mapping[str, str | None], environment: Mapping[str, str]) -> PropertyValue | None:
    text = flags.get(setting.name)
    if text is not None:
        return PropertyValue(text, setting.flag, "flag")
    if setting.variable in environment:
        return PropertyValue(environment[setting.variable], setting.variable, "environment")
    theirs = setting.theirs
    return PropertyValue(environment[theirs], theirs, "environment") if environment.get(theirs) else None


def _parsed(setting: Setting, given: PropertyValue) -> Any:
    try:
        return setting.parse(given.text)
    except ValueError as error:
        raise StartError(f"{given.where}: {error}") from None


def _read_file(flags: Mapping[str, str | None], environment: Mapping[str, str]) -> ConfigFile:
    setting = next(setting for setting in SETTINGS if setting.name == "ts_config")
    given = _said(setting, flags, environment)
    if given is None:
        return ConfigFile()
    return read_config_file(_parsed(setting, given), environment, _decided(flags, environment))


def _decided(flags: Mapping[str, str | None], environment: Mapping[str, str]) -> Sequence[str]:
    """Return the keys of config.properties about tokens that a flag, or the environment, decides or meets.

    Without tokens none can expire. A file that asks for tokens is content with both.
    """
    rows = {each.name: each for each in SETTINGS}
    without = _said(rows["management_without_token"], flags, environment)
    if without is not None and _parsed(rows["management_without_token"], without):
        return ("disable_token_authorization", "token_expiration_min")
    both = all(
        _said(rows[name], flags, environment) is not None or environment.get(variable)
        for name, variable in (("token_file", MANAGEMENT_VARIABLE), ("inference_token_file", INFERENCE_VARIABLE))
    )
    return ("disable_token_authorization",) if both else ()
