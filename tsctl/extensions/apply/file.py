"""Read a file of `tsctl apply`: YAML, or JSON, which is YAML too.

    models:
      NAME:                  one version
        source: …            a path from the file's folder, a name in the model store, MODULE:ATTRIBUTE, or a URL
        version: "1.0"       needed where the archive cannot be read here: at a URL
        sha256: …            of the archive's file
        handler: …           in place of the archive's
        workers: 2           or {min: 1, max: 4}; without it the number stays as it is
        settings:            as in model-config.yaml; without a setting here, the archive's counts
          batchSize: 8
      NAME:                  several versions, each with the keys above
        default: "1.0"
        versions:
          "1.0": {…}
          "2.0": {…}
        route: {…}           instead of `default`, see route.py

An error names the file, the line and the key.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tsctl.daemon.marfile import NAME, UNREADABLE, VERSION, manifest_in, parse_manifest
from tsctl.daemon.model_settings import MOST_WORKERS
from tsctl.daemon.tables import MODEL_SETTINGS
from tsctl.daemon.targets import FALLBACK_BATCH_SIZE, MODULE, ServeTarget
from tsctl.errors import CliError
from tsctl.extensions.apply.node import FileNode, ParsedFile
from tsctl.extensions.apply.route import read_route
from tsctl.extensions.apply.state import ModelSpec, VersionSpec, absolute
from tsctl.serving.requests import parameters_of, registered_target


class NamedSource(NamedTuple):
    """The source of a registration: `url`, and the handler in place of the archive's, if any.

    Attributes:
        version: that the source contains; empty if it cannot be read here.
        inferred: whether the source is a file or module without a manifest.
    """

    url: str
    handler: str | None
    version: str
    inferred: bool


def read_source(text: str, handler: str | None, folder: Path, store: Path | None) -> NamedSource:
    """A source in a file: its name for the daemon, and the version in the archive.

    The steps are planned before anything is loaded, so the version must be known: it is read from the archive's
    manifest, or said in the file. The daemon refuses an archive that contains another one.

    Args:
        handler: that the file names; None for none.
        folder: of the file, from which paths begin.
        store: the daemon's model store.

    Raises:
        CliError: the source cannot be served.
    """
    path = folder / text
    if handler is not None and MODULE.fullmatch(handler) and "://" not in text and path.is_dir():
        url = str(path.resolve())  # as `tsctl export` writes a module: the folder that it is imported from
        return NamedSource(url, handler, "1.0", inferred=True)
    target = registered_target(text, folder)
    if target.kind == "archive" and target.path is None:
        target = ServeTarget(kind="archive", url=absolute(target.url, store))
        if not os.path.exists(target.url):  # False where Path raises: a name too long
            raise CliError(f"there is no `{text}`, neither in `{folder}` nor in the model store", _stored(store))
    given = handler or parameters_of(target)["handler"]
    return NamedSource(target.url, given, target.version or _version_in(target.url), target.inferred)


def _stored(store: Path | None) -> str:
    """Return a hint that names the store and its archives."""
    if store is None:
        return "the daemon has no model store; name a path"
    try:
        names = sorted(each.name for each in store.iterdir() if not each.name.startswith("."))
    except OSError as error:
        return f"the model store `{store}` cannot be read: {error.strerror}"
    return f"`{store}` holds {', '.join(f'`{name}`' for name in names[:8]) or 'nothing'}"


def _version_in(url: str) -> str:
    """Return the version in an archive's manifest; empty if there is none that can be read here."""
    if "://" in url:
        return ""
    try:
        version = parse_manifest(manifest_in(Path(url))).model_version
    except UNREADABLE:  # the daemon says what is wrong with the archive
        return ""
    return version if VERSION.fullmatch(version) else ""


_SHA256 = re.compile(r"[0-9a-f]{64}")
_VERSION_KEYS = ("source", "version", "sha256", "handler", "workers", "settings")
_MODEL_KEYS = ("versions", "default", "route")
_SETTINGS = {row.yaml: row for row in MODEL_SETTINGS if row.yaml}
_ASKED = {row.yaml: row for row in MODEL_SETTINGS if row.yaml and row.rest and row.name != "workers"}
_WORKERS = ("minWorkers", "maxWorkers")


def read_file(file: Path, store: Path | None) -> dict[str, ModelSpec]:
    """Read the models that a file asks for.

    Args:
        store: the daemon's model store.

    Raises:
        CliError: the file cannot be read, is no YAML, or asks for something that cannot be.
    """
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"cannot read `{file}`: {getattr(error, 'strerror', None) or error}") from None
    return parse(text, str(file), file.absolute().parent, store)


def parse(text: str, name: str, folder: Path, store: Path | None) -> dict[str, ModelSpec]:
    """Read the models of a file's text; arguments and errors as in `read_file`.

    Args:
        name: of the file, for messages.
        folder: from which paths begin.
    """
    try:
        file = ParsedFile(name, text)
        document = FileNode(file, "", file.root)
        models = document.mapping(("models",)).get("models")
        if models is None:
            raise document.error("`models` is missing", "write `models: {}` to serve none")
        if models.is_empty:
            raise models.error("this is empty", "write `models: {}` to serve none")
        return {each: _model(node, each, folder, store) for each, node in models.mapping().items()}
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problem = f"the character U+{error.character:04X} is not allowed"
        raise CliError(f"{name}:{line}: this is no YAML: {problem}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = name if mark is None else f"{name}:{mark.line + 1}"
        raise CliError(f"{where}: this is no YAML: {getattr(error, 'problem', None) or error}") from None
    except RecursionError:
        raise CliError(f"{name}: this is nested too deeply") from None


def _model(node: FileNode, name: str, folder: Path, store: Path | None) -> ModelSpec:
    if not NAME.fullmatch(name):
        raise node.error(f"`{name}` is no name of a model", "use letters, digits, `_`, `-` and `.`")
    members = node.mapping((*_VERSION_KEYS, *_MODEL_KEYS))
    if "versions" not in members:
        if "default" in members:
            raise members["default"].error("there is one version, which is the default", "remove `default`")
        version, spec = _version(node, members, folder, store)
        if "route" in members:
            raise members["route"].error("there is one version, which answers all requests", "remove `route`")
        return ModelSpec(versions={version: spec}, default=version)
    for key in _VERSION_KEYS:
        if key in members:
            raise members[key].error("this belongs to one of the `versions`", f"move `{key}` below its version")
    versions: dict[str, VersionSpec] = {}
    for version, member in members["versions"].mapping().items():
        inside = member.mapping(tuple(key for key in _VERSION_KEYS if key != "version"))
        versions[version] = _version(member, inside, folder, store, version)[1]
    if not versions:
        raise members["versions"].error("this is empty", "name a version, or remove the model")
    default = members["default"].text() if "default" in members else ""
    route = read_route(members["route"], list(versions)) if "route" in members else {}
    if route:
        largest = max(route["weights"], key=lambda version: route["weights"][version])
        if default and default != largest:
            raise members["default"].error(
                f"the default of a route is the largest weight's, {largest}", "remove `default`"
            )
        default = largest
    if len(versions) > 1 and not default:
        raise node.error(
            "`default` is missing", f"name the version that answers requests without one: {_list(versions)}"
        )
    if default and default not in versions:
        raise members["default"].error(f"`{default}` is none of the versions", _list(versions))
    return ModelSpec(versions=versions, default=default or next(iter(versions)), route=route)


def _list(versions: Mapping[str, Any]) -> str:
    return ", ".join(f"`{version}`" for version in versions)


def _version(
    node: FileNode, members: Mapping[str, FileNode], folder: Path, store: Path | None, version: str = ""
) -> tuple[str, VersionSpec]:
    if "source" not in members:
        raise node.error("`source` is missing", "name an archive, a handler, a model, or a URL")
    handler = members["handler"].text() if "handler" in members else None
    text = members["source"].text()
    try:
        source = read_source(text, handler, folder, store)
    except CliError as error:
        raise _located(members["source"], error) from None
    if not version and "version" in members:
        version = members["version"].text()
    if version and not VERSION.fullmatch(version):
        raise (members.get("version") or node).error(f"`{version}` is no version", "use letters, digits and `.`")
    if not (version or source.version):
        raise node.error("`version` is missing, and cannot be read from the source", 'add it, such as `version: "1.0"`')
    if version and source.version and version != source.version:
        at = members.get("version") or node
        raise at.error(
            f"the source contains version {source.version}", f"write {source.version}, or name another source"
        )
    spec = VersionSpec(
        url=source.url,
        handler=source.handler,
        sha256=_sha256(members["sha256"]) if "sha256" in members else None,
        settings=_settings(members["settings"]) if "settings" in members else {},
        workers=_workers(members["workers"]) if "workers" in members else None,
        fallback_batch_size=FALLBACK_BATCH_SIZE if source.inferred else 0,
    )
    return version or source.version, spec


def _located(node: FileNode, error: CliError) -> CliError:
    located = node.error(error.message, error.hint)
    located.details = error.details
    return located


def _sha256(node: FileNode) -> str:
    pin = node.text().lower()
    if not _SHA256.fullmatch(pin):
        raise node.error(f"this is `{pin[:100]}`; expected 64 hexadecimal digits", "`sha256sum FILE` prints them")
    return pin


def _settings(node: FileNode) -> dict[str, Any]:
    found = {}
    for key, member in node.mapping(tuple(_SETTINGS)).items():
        if key in _WORKERS:
            raise member.error("the number of workers has a key of its own", "write `workers: N` beside `settings`")
        row = _SETTINGS[key]
        if key not in _ASKED:
            raise member.error("only the archive can set this, in its model-config.yaml", "remove the line")
        found[key] = row.written.show(member.read(row.written.read))
    return found


def _workers(node: FileNode) -> tuple[int, int]:
    if not node.is_mapping:
        count = node.read(_count)
        return count, count
    members = node.mapping(("min", "max"))
    if "min" not in members:
        raise node.error("`min` is missing", "write `workers: N`, or `workers: {min: N, max: M}`")
    least = members["min"].read(_count)
    most = members["max"].read(_count) if "max" in members else least
    if most < least:
        raise members["max"].error(f"{most} is less than `min`, {least}", "exchange them")
    return least, most


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MOST_WORKERS:
        raise ValueError(f"a whole number from 0 to {MOST_WORKERS}")
    return value
