"""The archives that the cases use: packed by our archiver, loaded by both servers."""

import json
import os
import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from tsctl.daemon.marfile import MANIFEST, Packing, write_archive

ARCHIVES = Path(__file__).parent / "archives"


@dataclass(frozen=True, slots=True)
class Archive:
    """One file of the model store.

    Attributes:
        handler: a file of archives/ without its suffix, `file.py:function`, or a built-in handler's name.
        model: the model's name, if it is not the file's.
        model_file: a file of archives/ that defines a network.
        config: the text of model-config.yaml.
        extra: further files of archives/.
        query: further parameters when a case registers it.
    """

    handler: str
    model: str = ""
    version: str = "1.0"
    model_file: str = ""
    config: str = ""
    extra: str = ""
    query: str = ""


_TABLE = yaml.safe_load(Path(__file__).with_name("archives.yaml").read_text())
MODELS = {name: Archive(**row) for name, row in _TABLE["models"].items()}
ODD: dict[str, object] = _TABLE["odd"]  # file → manifest; each holds archives/entry.py too


def pack(store: Path) -> None:
    """Write every archive of the table, and some files that are none, into a model store."""
    with tempfile.TemporaryDirectory() as folder:
        for name, archive in MODELS.items():
            config = Path(folder, "model-config.yaml")
            config.write_text(archive.config)
            packing = Packing(
                model_name=archive.model or name,
                version=archive.version,
                handler=_handler(archive.handler),
                model_file=ARCHIVES / archive.model_file if archive.model_file else None,
                extra_files=",".join(str(ARCHIVES / extra) for extra in archive.extra.split()),
                config_file=config if archive.config else None,
            )
            written = write_archive(packing, Path(folder), force=True)
            shutil.move(written, store / f"{name}.mar")
        for archive_format in ("tgz", "no-archive", "zip-store"):
            name = archive_format.replace("-", "_")
            packing = Packing(model_name=f"as_{name}", version="1.0", handler=_handler("entry.py:infer"))
            write_archive(packing, store, archive_format=archive_format)
    for name, manifest in ODD.items():
        with zipfile.ZipFile(store / name, "w") as odd:
            odd.write(ARCHIVES / "entry.py", "entry.py")
            if manifest is not None:
                odd.writestr(MANIFEST, json.dumps(manifest))
    (store / "junk.mar").write_text("no zip")
    (store / "junk.tar.gz").write_text("no tar")
    with zipfile.ZipFile(store / "no_json.mar", "w") as odd:
        odd.writestr(MANIFEST, "{")


def _handler(handler: str) -> str:
    file, _, function = handler.partition(".py:")
    path = ARCHIVES / f"{file}.py"
    if not path.is_file():
        return handler  # built in
    return f"{path}:{function}" if function else os.fspath(path)


def registrar(name: str) -> str:
    """The target that registers an archive of the table, and starts one worker."""
    query = MODELS[name].query
    return f"/models?url={name}.mar&initial_workers=1&synchronous=true" + (f"&{query}" if query else "")
