"""Read TorchServe's config.properties.

A key of a setting (`Setting.key` in settings.py) sets its value. A key that asks for protection which this
daemon would not provide stops the start. Other keys of TorchServe are named in a note, unknown ones in a
warning. With `enable_envvars_config=true` an environment variable `TS_KEY` wins over the file's `key`, as in
TorchServe.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tsctl.daemon.core.errors import StartError
from tsctl.daemon.declarations import FileKey
from tsctl.daemon.extension import Extension
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.tables import SETTINGS

_VARIABLE = re.compile(r"\$\$([A-Za-z_][A-Za-z0-9_]*)\$\$")
_ENABLE = "enable_envvars_config"
_BLOCK = "models"
_SNAPSHOT = "model_snapshot"
_LIST = "load_models"

KEYS: dict[str, str] = {setting.key: setting.name for setting in SETTINGS if setting.key}
_OF_EXTENSIONS: dict[str, FileKey] = {key.name: key for extension in EXTENSIONS for key in extension.file_keys}
READ = frozenset(name for name, key in _OF_EXTENSIONS.items() if key.read)

# Keys whose loss would weaken security: a test of the value, and the message that stops the start if it is true.
_NO_STORE = (
    "keys are read as PEM, not from Java's store: `openssl pkcs12 -in STORE -nodes -out server.pem`, then"
    " `certificate_file=server.pem` and `private_key_file=server.pem`; remove the key"
)
_OWN_TOKENS = (
    "name the tokens with `--token-file` and `--inference-token-file` (TorchServe's `key_file.json` may be both), and"
    " remove the key"
)
_NO_TOKENS = f"a token here does not expire; {_OWN_TOKENS}"
STOPS: dict[str, tuple[Callable[[str], bool], str]] = {
    "disable_token_authorization": (lambda value: value.lower() != "true", _OWN_TOKENS),
    "token_expiration_min": (bool, _NO_TOKENS),
    "keystore": (bool, _NO_STORE),
    "keystore_pass": (bool, _NO_STORE),
    "keystore_type": (bool, _NO_STORE),
    **{name: (key.stops, key.why) for name, key in _OF_EXTENSIONS.items() if key.stops is not None},
}

# TorchServe's other keys, which have no effect here.
MEANINGLESS = frozenset({
    *(_OF_EXTENSIONS.keys() - READ),
    "async_logging",
    "cpp_log_config", "cpu_launcher_args", "cpu_launcher_enable", "debug",
    "initial_distribution_port",
    "initial_worker_port", "io_ratio", "ipex_enable", "ipex_gpu_enable",
    "max_response_size", "model_server_home", "netty_client_threads",
    "number_of_netty_threads", "plugins_path", "prefer_direct_buffer", "system_metrics_cmd",
    "ts_open_inference_protocol", "tsConfigFile", "use_env_allowed_urls", "use_native_io", "version", "vmargs",
    "workflow_store",
})  # fmt: skip
# What to do instead of some of them: groups of keys with one sentence.
INSTEAD: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"workflow_store"}), "workflows are not served; register their models, and call them from one handler"),
    (frozenset({"plugins_path"}), "Java plugins are not loaded; an archive's address may be a path or an https URL"),
    (frozenset({"cpu_launcher_args", "cpu_launcher_enable"}), "`cpus` in model-config.yaml gives workers their cores"),
    (frozenset({"ipex_enable", "ipex_gpu_enable"}), "model-config.yaml says how a model is made faster"),
    (frozenset({"ts_open_inference_protocol"}), "the protocol's routes, /v2/…, are always there"),
    (frozenset({"use_env_allowed_urls"}), "TSCTL_ALLOWED_URLS is always read"),
)  # fmt: skip
# Keys without an environment variable in TorchServe.
_FILE_ONLY = frozenset({"use_native_io", "io_ratio", "metric_time_interval", "models", "model_snapshot",
                        "system_metrics_cmd", _ENABLE})  # fmt: skip
_ODD_VARIABLES = {"token_expiration_min": "TS_TOKEN_EXPIRATION_TIME_MIN"}

_VMARGS = "vmargs"

ModelValues = Mapping[str, Mapping[str, Mapping[str, Any]]]  # model → version → key → value


class PropertyValue(NamedTuple):
    """A value as text, its place (for errors), and its origin."""

    text: str
    where: str
    origin: str


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The content of a config.properties.

    Attributes:
        settings: setting → value.
        models: the `models` block.
        snapshot: the models that TorchServe had registered when it wrote the file, in the same form.
        notes: sentences for the operator about keys that are not obeyed.
        keys: the values of those that extensions read.
    """

    settings: Mapping[str, PropertyValue] = field(default_factory=dict)
    models: ModelValues = field(default_factory=dict)
    snapshot: ModelValues = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)

    def keys_of(self, extension: Extension) -> Mapping[str, str]:
        """Return the values of an extension's own keys."""
        return {key.name: self.keys[key.name] for key in extension.file_keys if key.name in self.keys}


def read_config_file(path: Path, environment: Mapping[str, str], decided: Collection[str] = ()) -> ConfigFile:
    """Read a config.properties.

    Args:
        decided: keys whose wish a flag or the environment decides, or meets.

    Raises:
        StartError: the file cannot be read, names a missing environment variable, or asks for protection that this
            daemon would not provide.
    """
    given = _given(path, environment)
    for key, (asks, sentence) in STOPS.items():
        if key in given and key not in decided and asks(given[key].text):
            raise StartError(f"{given[key].where}: {sentence}")
    known = KEYS.keys() | STOPS.keys() | MEANINGLESS | READ | {_BLOCK, _SNAPSHOT, _ENABLE}
    unknown = sorted(given.keys() - known)
    settings = {KEYS[key]: value for key, value in given.items() if key in KEYS and value.text}
    settings |= _take_vmargs(given)
    meaningless = sorted(given.keys() & (STOPS.keys() | MEANINGLESS) - KEYS.keys())
    notes = []
    if unknown:
        named = ", ".join(_with_nearest(key, known) for key in unknown)
        notes.append(f"warning: {path} has unknown keys: {named}")
    for keys, instead in INSTEAD:
        found = sorted(keys.intersection(meaningless))
        if found:
            verb = "has" if len(found) == 1 else "have"
            notes.append(f"note: {path}: {', '.join(found)} {verb} no effect here: {instead}")
    others = [key for key in meaningless if not any(key in keys for keys, _ in INSTEAD)]
    if others:
        notes.append(f"note: {path} has keys that have no effect here: {', '.join(others)}")
    snapshot = _read_snapshot(given.get(_SNAPSHOT))
    if snapshot is not None:
        if _LIST in given:
            notes.append(f"note: {path}: `{_SNAPSHOT}` selects the models; `{_LIST}` is ignored")
        settings[KEYS[_LIST]] = given[_SNAPSHOT]._replace(text=_listed(snapshot))
    read = {key: given[key].text for key in READ & given.keys()}
    return ConfigFile(settings, _read_block(given.get(_BLOCK)), snapshot or {}, tuple(notes), read)


def _with_nearest(key: str, known: Collection[str]) -> str:
    """Return an unknown key, with the known one that it is but for a letter or two."""
    from difflib import get_close_matches  # takes 8 ms

    near = get_close_matches(key, known, n=1, cutoff=0.85)
    return f"{key} ({near[0]}?)" if near else key


def _take_vmargs(given: dict[str, PropertyValue]) -> dict[str, PropertyValue]:
    """Return the settings that options of TorchServe's Java machine name; forget the key if it says nothing else."""
    if (said := given.get(_VMARGS)) is None:
        return {}
    found = {each.name: match for each in SETTINGS if each.vmargs and (match := re.search(each.vmargs, said.text))}
    if any(match[0] == said.text for match in found.values()):
        del given[_VMARGS]
    return {name: said._replace(text=match[1]) for name, match in found.items()}


def _given(path: Path, environment: Mapping[str, str]) -> dict[str, PropertyValue]:
    given = {
        key: PropertyValue(_filled(text, f"{path}: {key}", environment), f"{path}: {key}", f"file {path}")
        for key, text in read_properties(path).items()
    }
    enable = given.get(_ENABLE)
    if enable is not None and enable.text.lower() == "true":
        for key in (KEYS.keys() | STOPS.keys() | MEANINGLESS | READ) - _FILE_ONLY:
            variable = _ODD_VARIABLES.get(key) or "TS_" + key.removeprefix("ts_").upper()
            if variable in environment:
                given[key] = PropertyValue(environment[variable], variable, "environment")
    return given


def read_properties(path: Path) -> dict[str, str]:
    """Read the keys and values of a file.

    Raises:
        StartError: the file cannot be read, or is broken.
    """
    import javaproperties  # here, because it takes 55 ms, which a daemon without a file saves

    try:
        content = path.read_bytes()
    except OSError as error:
        raise StartError(
            f"cannot read `{path}`: {error.strerror}", "`--ts-config` or TS_CONFIG_FILE names it"
        ) from None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # the encoding of Java's properties
    try:
        return {key: value.strip() for key, value in javaproperties.loads(text).items()}
    except javaproperties.InvalidUEscapeError as error:
        raise StartError(f"{path}: `{error.escape}` is not a character") from None


def _filled(text: str, where: str, environment: Mapping[str, str]) -> str:
    """Replace each `$$NAME$$` by the environment's value.

    Raises:
        StartError: the environment has no such variable.
    """

    def value_of(match: re.Match[str]) -> str:
        value = environment.get(match[1])
        if value is None:
            raise StartError(f"{where}: the environment has no variable for `{match[0]}`")
        return value

    return _VARIABLE.sub(value_of, text)


def _read_block(block: PropertyValue | None) -> ModelValues:
    """Read the `models` block: a JSON object, by model and version."""
    return {} if block is None or not block.text else _checked_models(block, _read_json(block))


def _read_snapshot(snapshot: PropertyValue | None) -> ModelValues | None:
    """Read TorchServe's `model_snapshot`, in which `marName` is the name of each version's archive."""
    if snapshot is None or not snapshot.text:
        return None
    document = _read_json(snapshot)
    models = _checked_models(snapshot, document.get("models") if isinstance(document, dict) else None)
    for model, versions in models.items():
        for version, values in versions.items():
            archive = values.get("marName")
            if not isinstance(archive, str) or not archive or "," in archive:
                raise StartError(f"{snapshot.where}: `{model}` {version} has no `marName`, the name of its archive")
    return models


def _listed(models: ModelValues) -> str:
    return ",".join(f"{name}={values['marName']}" for name, versions in models.items() for values in versions.values())


def _read_json(given: PropertyValue) -> Any:
    try:
        return json.loads(given.text)
    except (ValueError, RecursionError) as error:
        raise StartError(f"{given.where}: the value is not JSON: {error}") from None


def _checked_models(block: PropertyValue, document: Any) -> ModelValues:
    if not isinstance(document, dict):
        raise StartError(f"{block.where}: expected a JSON object of models")
    for model, versions in document.items():
        if not isinstance(versions, dict) or not all(isinstance(values, dict) for values in versions.values()):
            raise StartError(
                f"{block.where}: invalid `{model}`; expected a JSON object of versions, each an object of values"
            )
    checked: ModelValues = document
    return checked
