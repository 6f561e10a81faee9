"""Read a model directory's manifest, and check that the named files exist."""

import importlib.util
import json
from pathlib import Path

from daemon.core.errors import InvalidModel
from daemon.marfile import MANIFEST, NAME, VERSION, Manifest, ManifestError, parse_manifest
from handlers.names import BUILT_IN, RESERVED_MODULES, split_handler


def read_manifest(
    model_dir: Path,
    *,
    model_name: str | None,
    handler: str | None,
    runtime: str | None = None,
    default_handler: str | None = None,
) -> Manifest:
    """Read and check the manifest of an unpacked archive.

    Args:
        model_name, handler, runtime: win over the manifest's; with the first two given, the manifest may be missing.
        default_handler: used if neither the argument nor the manifest names a handler.

    Raises:
        InvalidModel: the manifest is missing or wrong, or names a file or handler that does not exist.
    """
    file = model_dir / MANIFEST
    document: object
    if file.is_file():
        try:
            document = json.loads(file.read_bytes())
        except (ValueError, RecursionError) as error:
            raise InvalidModel(f"The manifest is not JSON: {error}") from None
    elif model_name and (handler or default_handler):
        document = {"runtime": "python", "model": {"modelName": model_name}}
    elif (model_dir / "WAR-INF").is_dir():
        raise InvalidModel("The archive holds a workflow; tsctl serves only models.")
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
    return manifest


def _check(manifest: Manifest, model_dir: Path) -> None:
    if not NAME.fullmatch(manifest.model_name):
        raise InvalidModel(f"`{manifest.model_name}` is no model name: letters, digits, `_`, `-` and `.` only.")
    if not VERSION.fullmatch(manifest.model_version):
        raise InvalidModel(f"`{manifest.model_version}` is no model version: letters, digits, `_`, `-`, `+`, `.` only.")
    for name in (manifest.model_file, manifest.serialized_file, manifest.config_file, manifest.requirements_file):
        if name is not None and not (model_dir / Path(name).name).is_file():
            raise InvalidModel(f"The manifest names the file `{name}`, which the archive does not contain.")
    _check_handler(manifest, model_dir)


def _check_handler(manifest: Manifest, model_dir: Path) -> None:
    if not manifest.handler:
        raise InvalidModel("The manifest names no handler; name one with `handler` when registering.")
    module, _ = split_handler(manifest.handler)
    own_files = {Path(name).stem for name in (f"{module}.py", manifest.model_file or "")}
    for entry in model_dir.iterdir():
        importable = entry.is_dir() or entry.suffix == ".py"
        if importable and entry.stem in RESERVED_MODULES and entry.stem not in own_files:
            raise InvalidModel(f"The archive holds a module `{entry.stem}`, a name that tsctl itself uses; rename it.")
    if (model_dir / f"{module}.py").is_file() or module in BUILT_IN or _installed(module):
        return
    names = ", ".join(BUILT_IN)
    raise InvalidModel(
        f"Unknown handler `{manifest.handler}`: the archive contains no {module}.py; built in are {names}."
    )


def _installed(module: str) -> bool:
    """Return whether a handler module of this name is installed in the environment; import nothing."""
    try:
        return module.isidentifier() and importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
