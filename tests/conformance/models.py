"""The archives that the cases use: packed by our archiver, loaded by both servers."""

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from daemon.marfile import Packing, write_archive

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


MODELS: dict[str, Archive] = {
    "shows": Archive("shows"),
}


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


def _handler(handler: str) -> str:
    file, _, function = handler.partition(".py:")
    path = ARCHIVES / f"{file}.py"
    if not path.is_file():
        return handler  # built in
    return f"{path}:{function}" if function else os.fspath(path)


def registration(name: str) -> str:
    """The target that registers an archive of the table, and starts one worker."""
    query = MODELS[name].query
    return f"/models?url={name}.mar&initial_workers=1&synchronous=true" + (f"&{query}" if query else "")
