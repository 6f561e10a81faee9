"""The first template, started before the daemon has imported the rest of itself.

    python -m tsctl.daemon ── settings ──┬── imports of the daemon, sockets, archives unpacked      0.6 s
                                   └── a template: imports of torch                           1.2 s

Both run at the same time. Whether the models of this start need torch is guessed from the names and files of their
archives; a wrong guess costs time or memory only (import_scan.py).
"""

import contextlib
import json
import os
import resource
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from tsctl.daemon import paths
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.marfile import UNREADABLE, is_bounded, manifest_in, manifest_in_zip, open_zip
from tsctl.daemon.workers.processes.import_scan import needs_in, needs_of
from tsctl.daemon.workers.processes.spawn import StartedTemplate, base_environment, start_template

_MOST = 1024 * 1024  # bytes of a Python file that are read


def start_early(config: Config, *, replacing: bool) -> StartedTemplate | None:
    """Start the first template if this daemon will need one at once.

    Args:
        replacing: whether this daemon takes over the models of another one.
    """
    if not config.template or not wants_torch(config, replacing=replacing):
        return None
    raise_file_limit()
    try:
        return start_template(base_environment(model_environment(os.environ, config)))
    except OSError:
        return None  # the daemon tries again, and tells


def raise_file_limit() -> int:
    """Raise the limit of open files, which connections need, to the hard limit; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def wants_torch(config: Config, *, replacing: bool) -> bool:
    """Return whether a model of this start seems to need torch; True, too, if there is no model yet."""
    listed = _listed(config) if config.models is not None and not replacing else ()
    remembered = _remembered(config) if config.restore or replacing else ()
    none = True
    for needs in chain(listed, remembered):  # the first that needs torch decides: a store may hold hundreds
        if needs:
            return True
        none = False
    return none


def _listed(config: Config) -> Iterator[bool]:
    """Yield for each archive of the list whether torch is needed."""
    store = config.model_store
    for model in config.models or ():
        _, equals, url = model.partition("=")
        url = url.strip() if equals else model
        if url in ("ALL", "all"):
            places = sorted(store.iterdir()) if store is not None and store.is_dir() else []
        else:
            places = [Path(url) if store is None else store / url]
        yield from map(_archive_needs_torch, places)


def _remembered(config: Config) -> Iterator[bool]:
    """Yield for each unpacked version of the snapshot whether torch is needed."""
    try:
        models = json.loads(paths.snapshot(config.state_dir).read_bytes())["models"]
        names = [model.get("unpacked") for model in models]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    folder = paths.models_dir(config.state_dir)
    yield from (isinstance(name, str) and _archive_needs_torch(folder / name) for name in names)


def _archive_needs_torch(path: Path) -> bool:
    try:
        if path.is_dir():
            return needs_of(_handler(manifest_in(path)), path).torch
        with open_zip(path) as archive:
            handler = _handler(manifest_in_zip(archive))
            files = [info for info in archive.infolist() if info.filename.endswith(".py") and is_bounded(info)]
            texts = {info.filename: _reader(archive, info) for info in files if "/" not in info.filename}
            return needs_in(handler, texts).torch
    except (*UNREADABLE, TypeError):
        return False  # the registration reports what is wrong


def _reader(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    def read() -> bytes:
        with archive.open(info) as file:
            return file.read(_MOST)

    return read


def _handler(manifest: Any) -> str:
    return str(manifest["model"]["handler"])
