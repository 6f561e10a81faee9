"""Read a model directory's manifest, and check that the named files exist, and that it is what was asked for.

A registration may pin the version and the SHA-256 of its archive. A file that is served in place has no version of its
own: it gets the one that is asked for. Two versions of a model cannot be one file: the workers of the first are started
anew some day, and would then run what the second wrote.
"""

import importlib.util
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import yaml

from tsctl.daemon.core.errors import BadRequest, InvalidModel
from tsctl.daemon.core.texts.json_text import parse_json
from tsctl.daemon.marfile import MANIFEST, MOST_TEXT, NAME, VERSION, Manifest, ManifestError, parse_manifest
from tsctl.daemon.models.archives.readers import SAVED_BY_TORCH
from tsctl.daemon.models.request import Registration, Source
from tsctl.daemon.tables import MODEL_SETTINGS
from tsctl.daemon.targets import TargetError, bare_target, is_bare, local_files, split_function, top_imports
from tsctl.handlers.names import BUILT_IN, NOT_BUILT_IN, OWN_PACKAGE, split_handler
from tsctl.handlers.texts.near_names import plain


def read_text(file: Path, name: str) -> bytes:
    """Read a file of an archive that the daemon itself parses. Blocks.

    Args:
        name: as the archive names the file.

    Raises:
        InvalidModel: the file has more than `MOST_TEXT` bytes.
        OSError: the file cannot be read.
    """
    with file.open("rb") as opened:
        text = opened.read(MOST_TEXT + 1)
    if len(text) > MOST_TEXT:
        raise InvalidModel(
            f"`{name}` has more than {MOST_TEXT // 1024} KiB; put large tables into a file of their own."
        )
    return text


def bare_manifest(directory: Path, url: str, version: str | None = None) -> dict[str, Any] | None:
    """Infer the manifest of a single file that is served in place; None if the registration names something else.

    Args:
        directory: the file's folder.
        url: as the registration names the file, perhaps with `:function`.
        version: of the model; None for the first one.

    Raises:
        InvalidModel: the file cannot be served.
    """
    name, function = split_function(url)
    file = directory / Path(name).name
    if not is_bare(url) or not file.is_file():
        return None
    try:
        target = bare_target(file, function)
        return (target if version is None else replace(target, version=version)).manifest()
    except TargetError as error:
        remedy = f"; {error.hint}" if error.hint else ""
        raise InvalidModel(f"{error.message}{remedy}.") from None


def read_manifest(
    model_dir: Path,
    *,
    model_name: str | None,
    handler: str | None,
    runtime: str | None = None,
    default_handler: str | None = None,
    inferred: Mapping[str, Any] | None = None,
) -> Manifest:
    """Read and check the manifest of an unpacked archive. Blocks.

    Args:
        model_name, handler, runtime: win over the manifest's; with the first two given, the manifest may be missing.
        default_handler: used if neither the argument nor the manifest names a handler.
        inferred: the manifest's document, for a file that is served in place.

    Raises:
        InvalidModel: the manifest is missing or wrong, or names a file or handler that does not exist.
    """
    file = model_dir / MANIFEST
    document: object
    own = inferred is None and file.is_file()
    if inferred is not None:
        document = inferred
    elif own:
        try:
            document = parse_json(read_text(file, MANIFEST))
        except ValueError as error:
            raise InvalidModel(f"The manifest is not JSON: {error}") from None
    elif model_name and (handler or default_handler):
        document = {"runtime": "python", "model": {"modelName": model_name}}
    elif (model_dir / "data.pkl").is_file():
        script = (model_dir / "constants.pkl").is_file()
        what = "a TorchScript file: rename it, so that it ends in `.pt`." if script else SAVED_BY_TORCH
        raise InvalidModel(f"The archive is {what}")
    elif (model_dir / "WAR-INF").is_dir():
        raise InvalidModel(
            "The archive holds a workflow; tsctl serves only models: register them, and call them from a handler."
        )
    else:
        raise InvalidModel(f"Model name is not defined. The archive has no {MANIFEST}; `tsctl archive` writes one.")
    if model_name and isinstance(document, dict) and isinstance(document.get("model"), dict):
        document = document | {"model": document["model"] | {"modelName": model_name}}
    if isinstance(document, dict) and isinstance(document.get("model"), dict):
        handler = handler or document["model"].get("handler") or default_handler
        if handler:
            document = document | {"model": document["model"] | {"handler": handler}}
    if runtime and isinstance(document, dict):
        document = document | {"runtime": runtime}
    try:
        manifest = parse_manifest(document)
    except ManifestError as error:
        raise InvalidModel(str(error)) from None
    _check(manifest, model_dir)
    if own:
        _check_no_module_is_ours(manifest, model_dir)
    else:
        _check_no_collision(manifest, model_dir)
    return manifest


_NAMES = ("modelName", "modelVersion", "handler", "modelFile", "serializedFile", "configFile", "requirementsFile")
_LONGEST = 250  # bytes of a name in a manifest: a file's has 255, with `.py`


def _check(manifest: Manifest, model_dir: Path) -> None:
    model = manifest.raw["model"]
    for key in _NAMES:
        name = model.get(key) or ""
        if key.endswith("File"):  # a path of where it was packed: the last part counts
            name = Path(name).name
        if (size := len(name.encode(errors="replace"))) > _LONGEST:
            raise InvalidModel(f"The manifest's `{key}` has {size} bytes; at most {_LONGEST} are taken.")
    if not NAME.fullmatch(manifest.model_name):
        raise InvalidModel(f"`{manifest.model_name}` is no model name: letters, digits, `_`, `-` and `.` only.")
    if not VERSION.fullmatch(manifest.model_version):
        raise InvalidModel(f"`{manifest.model_version}` is no model version: letters, digits, `_`, `-`, `+`, `.` only.")
    for file in (manifest.model_file, manifest.serialized_file, manifest.config_file, manifest.requirements_file):
        if file is not None and not (model_dir / Path(file).name).is_file():
            raise InvalidModel(f"The manifest names the file `{file[-_LONGEST:]}`, which the archive does not contain.")
    _check_handler(manifest, model_dir)


def _check_handler(manifest: Manifest, model_dir: Path) -> None:
    if not manifest.handler:
        raise InvalidModel("The manifest names no handler; name one with `handler` when registering.")
    module, _ = split_handler(manifest.handler)
    if (model_dir / f"{module}.py").is_file() or module in BUILT_IN or _installed(module, model_dir):
        return
    if module in NOT_BUILT_IN:
        raise InvalidModel(f"TorchServe's handler `{module}` is not built in here: {NOT_BUILT_IN[module]}.")
    names = ", ".join(BUILT_IN)
    raise InvalidModel(
        f"Unknown handler `{manifest.handler}`: the archive contains no {module}.py; built in are {names}."
    )


def _installed(module: str, model_dir: Path) -> bool:
    """Return whether a handler module, perhaps within packages, is below the directory or installed; import nothing."""
    package, *inner = module.split(".")
    if not all(part.isidentifier() for part in (package, *inner)):
        return False
    if inner and (model_dir.joinpath(package, *inner[:-1], f"{inner[-1]}.py").is_file()):
        return True
    try:
        return importlib.util.find_spec(package) is not None  # of `package.module` it would import the package
    except (ImportError, ValueError):
        return False


def _own_stems(manifest: Manifest) -> set[str]:
    module, _ = split_handler(manifest.handler)
    return {Path(name).stem for name in (f"{module}.py", manifest.model_file or "")}


def _check_no_module_is_ours(manifest: Manifest, model_dir: Path) -> None:
    """Raise InvalidModel if an archive holds a module with the name of tsctl's package."""
    if _named_as_ours(model_dir) is not None and OWN_PACKAGE not in _own_stems(manifest):
        raise InvalidModel(f"The archive holds a module `{OWN_PACKAGE}`, a name that tsctl itself uses; rename it.")


def _named_as_ours(folder: Path) -> Path | None:
    return next((each for each in (folder / OWN_PACKAGE, folder / f"{OWN_PACKAGE}.py") if each.exists()), None)


def _check_no_collision(manifest: Manifest, model_dir: Path) -> None:
    """Raise InvalidModel if files served in place import a module of their folder that a worker takes for tsctl's.

    Where they do not import it, it does no harm, and the folder is the user's.
    """
    taken = _named_as_ours(model_dir)
    if taken is None or OWN_PACKAGE in _own_stems(manifest) or _is_ours(taken):
        return
    module, _ = split_handler(manifest.handler)
    starts = [model_dir / Path(name).name for name in (f"{module}.py", manifest.model_file or "") if name]
    files = [file for start in starts if start.is_file() for file in local_files(start)]
    if OWN_PACKAGE in top_imports(files):
        raise InvalidModel(
            f"{starts[0].name} imports `{OWN_PACKAGE}`, a name that tsctl itself uses; rename `{taken.name}`."
        )


def _is_ours(entry: Path) -> bool:
    """Return whether a directory is tsctl's own package: its clone is a folder like any other."""
    spec = importlib.util.find_spec(OWN_PACKAGE)
    places = spec.submodule_search_locations if spec is not None else None
    return any(entry.is_dir() and entry.samefile(place) for place in places or ())


# Errors of PyYAML: for a month 13, an empty `!!int`, a `!!timestamp` of no date, and deep nesting not its own one.
_NOT_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError)

# TorchServe's keys that have no effect here; each one set is logged.
_WITHOUT_EFFECT = ("maxRetryTimeoutInSec",)
# And those without which requests would be answered in another way than the archive asks for.
_REFUSED = {
    "useJobTicket": "refuses requests while no worker is free, and here they wait: remove it, and set `jobQueueSize` to"
    " the number of requests that may wait",
}


_DEPENDENT = [row for row in MODEL_SETTINGS if row.only_with]


def without_effect(document: Mapping[str, Any]) -> list[str]:
    """Return the keys that are set and have no effect here."""
    found = [key for key in _WITHOUT_EFFECT if document.get(key)]
    for row in _DEPENDENT:
        value = document.get(row.yaml)
        if value and not document.get(row.only_with):
            found.append(row.yaml)
        elif isinstance(value, dict):
            found += [f"{row.yaml}.{key}" for key in sorted(value.keys() - set(row.members), key=str)]
    return found


def misspelt(document: Mapping[str, Any]) -> list[str]:
    """Return a sentence on each key that is a setting's but for case and signs; any other key is the handler's own."""
    settings = {row.yaml for row in MODEL_SETTINGS if row.yaml}
    others = [key for key in map(str, document) if key not in settings]
    if not others:
        return []
    known = {plain(name): name for name in settings}
    return [
        f"`{key}` in model-config.yaml is no setting; did you mean `{known[plain(key)]}`?"
        for key in others
        if plain(key) in known
    ]


def unused_devices(document: Mapping[str, Any], devices: Sequence[int]) -> list[str]:
    """Return a sentence on each setting that asks for GPUs where `devices`, those of the model's workers, are none."""
    kind = document.get("deviceType")
    asked = [] if devices else ["deviceIds"] * bool(document.get("deviceIds")) + ["deviceType"] * (kind == "gpu")
    why = "`deviceType` is cpu" if kind == "cpu" else "this daemon uses no GPU"
    return [f"`{key}` in model-config.yaml has no effect: {why}" for key in asked]


def check_served(document: Mapping[str, Any], config_file: str | None) -> None:
    """Check that the archive asks for nothing that would be missed.

    Raises:
        InvalidModel: a key of TorchServe is set that is not served; the message names it.
    """
    for key, why in _REFUSED.items():
        if document.get(key):
            raise InvalidModel(f"{config_file}: `{key}` is not served. In TorchServe it {why}.")


_DEEPEST = 50  # levels


class _Loader(yaml.SafeLoader):
    """A safe loader with bounded depth and size, where each alias, and so each `<<`, counts as what it stands for.

    400 bytes of aliases of aliases become a billion values for each reader that walks them.
    """

    depth = size = 0  # `size`: one for each node so far, and the characters of its text

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        alias, mark, before = isinstance(event, yaml.AliasEvent), event.start_mark, self.size
        if self.depth >= _DEEPEST:
            raise yaml.composer.ComposerError(None, None, f"more than {_DEEPEST} levels", mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        size = vars(node).get("size") if alias else 1 + len(getattr(event, "value", ""))
        if size is None:
            raise yaml.composer.ComposerError(None, None, "an alias within the value that it stands for", mark)
        self.size += size
        if self.size > MOST_TEXT:
            raise yaml.composer.ComposerError(None, None, f"more than {MOST_TEXT // 1024} KiB, aliases resolved", mark)
        vars(node)["size"] = self.size - before
        return node


def read_yaml(model_dir: Path, config_file: str | None) -> dict[str, Any]:
    """Read the archive's `model-config.yaml` within limits; an empty dict if there is none. Blocks.

    PyYAML takes seconds for a few hundred kilobytes, and square time in the depth of brackets. The parser in C would be
    faster, and keep the interpreter's lock, and so the event loop, for all of its time.

    Raises:
        InvalidModel: the file is not YAML, is too long or too deep, or is not a mapping.
    """
    if config_file is None:
        return {}
    try:
        document = yaml.load(read_text(model_dir / Path(config_file).name, config_file), _Loader)
    except _NOT_YAML as error:
        raise InvalidModel(f"`{config_file}` is not YAML: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise InvalidModel(f"`{config_file}` holds a {type(document).__name__}, and should hold a mapping.")
    return document


_SHA256 = re.compile(r"[0-9a-f]{64}")


class ServedVersion(Protocol):
    """A registered version, as far as another one may be of the same file."""

    name: str
    version: str
    source: Source


def sha256_pin(text: str | None) -> str:
    """Return the pin in lower case; empty for None, which is no pin.

    Raises:
        BadRequest: the text is no SHA-256, or empty: a variable that was not set would pin nothing.
    """
    if text is None:
        return ""
    pin = text.lower()
    if not _SHA256.fullmatch(pin):
        raise BadRequest(f"sha256 is {text[:100]!r}; expected 64 hexadecimal digits, as `sha256sum FILE` prints them.")
    return pin


def check_version(request: Registration, manifest: Manifest) -> None:
    """Raise InvalidModel if the archive contains another version than the registration asks for."""
    wanted, found = request.model_version, manifest.model_version
    if wanted is not None and wanted != found:
        raise InvalidModel(f"The archive {request.url} contains version {found}; version {wanted} was asked for.")


def check_own_file(request: Registration, manifest: Manifest, directory: Path, others: Iterable[ServedVersion]) -> None:
    """Raise InvalidModel if another version of the model is served in place from the file that is to be registered.

    Args:
        directory: in which the file is.
        others: the registered versions.
    """
    if not is_bare(request.url):
        return
    file = _file_of(request.url)
    for other in others:
        same = other.source.directory == directory and _file_of(other.source.url) == file
        if other.name == manifest.model_name and other.version != manifest.model_version and same:
            raise InvalidModel(
                f"Version {other.version} of {other.name} is served from `{directory / file}`, too: its workers would"
                " run what is in the file now as soon as one is replaced. Give each version a file of its own, or pack"
                " it with `tsctl archive`."
            )


def _file_of(url: str) -> str:
    return Path(split_function(url)[0]).name
