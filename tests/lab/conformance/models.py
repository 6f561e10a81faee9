"""The archives that the cases use: packed by our archiver, loaded by both servers."""

import json
import os
import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

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


MODELS: dict[str, Archive] = {
    "shows": Archive("shows"),
    "results": Archive("results"),
    "fails": Archive("fails", config="responseTimeout: 1\n"),
    "speaks": Archive("speaks", config="minWorkers: 1\nmaxWorkers: 1\nhandler:\n  mine: [1, 2.5, yes]\n"),
    "entry": Archive("entry.py:infer"),
    "staged": Archive("staged", model_file="linear.py"),
    "linear": Archive("base_handler", model_file="linear.py"),
    "colours": Archive("image_classifier", model_file="colours.py", extra="index_to_name.json"),
    "slow": Archive("slow", config="jobQueueSize: 1\n"),
    "detector": Archive(
        "base_handler", model_file="detector.py", extra="index_to_name.json", query="handler=object_detector"
    ),
    "segmenter": Archive("base_handler", model_file="segmenter.py", query="handler=image_segmenter"),
    "text": Archive(
        "base_handler",
        model_file="text_net.py",
        extra="index_to_name.json source_vocab.pt",
        query="handler=text_classifier",
    ),
    # fixed is how TorchServe batches; it passes over the parameter.
    "batched": Archive("slow", query="batch_size=4&max_batch_delay=600&batching=fixed"),
    "describes": Archive("describes"),
    "explains": Archive("explains", model_file="linear.py"),
    "streams": Archive("streams"),
    "measures": Archive("measures"),
    "declares": Archive("declares.py:infer"),
    "micro": Archive("micro", model_file="linear.py"),
    "names": Archive("names"),
    "no_load": Archive("no_load"),
    "no_memory": Archive("no_memory"),
    "no_import": Archive("no_import"),
    "no_class": Archive("no_class"),
    "two_classes": Archive("two_classes"),
    "plain": Archive("plain"),
    "sums": Archive("sums"),
    "large": Archive("large"),
    "pictures": Archive(
        "image_classifier",
        model_file="colours.py",
        extra="index_to_name.json",
        query="batch_size=2&max_batch_delay=3000&batching=fixed",
    ),
    "v1": Archive("entry.py:infer", model="versions", version="1.0"),
    "v2": Archive("shows", model="versions", version="2.0"),
    "yaml": Archive(
        "entry.py:infer",
        config="minWorkers: 1\nmaxWorkers: 2\nbatchSize: 3\nmaxBatchDelay: 50\nresponseTimeout: 30\njobQueueSize: 7\n",
    ),
    "odd_yaml": Archive("entry.py:infer", config="batchSize: many\nmaxBatchDelay: 20\nunknownKey: 1\n"),
    "broken_yaml": Archive("entry.py:infer", config="batchSize: [1\n"),
}


# Archives that are not as they should be: file → manifest; each holds archives/entry.py too.
ODD: dict[str, object] = {
    "no_version.mar": {"runtime": "python", "model": {"modelName": "no_version", "handler": "entry.py:infer"}},
    "no_runtime.mar": {"model": {"modelName": "no_runtime", "modelVersion": "1.0", "handler": "entry.py:infer"}},
    "no_name.mar": {"runtime": "python", "model": {"modelVersion": "1.0", "handler": "entry.py:infer"}},
    "no_model.mar": {"runtime": "python"},
    "ruby.mar": {"runtime": "ruby", "model": {"modelName": "ruby", "modelVersion": "1.0", "handler": "entry.py"}},
    "no_handler.mar": {"runtime": "python", "model": {"modelName": "no_handler", "modelVersion": "1.0"}},
    "absent.mar": {"runtime": "python", "model": {"modelName": "absent", "modelVersion": "1.0", "handler": "gone.py"}},
    "no_manifest.mar": None,
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
