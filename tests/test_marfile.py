"""An archive is written as torch-model-archiver writes it, whole or not at all."""

import json
import os
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.kit.archives import manifest_document, write_files
from tests.kit.said import reason, said_in
from tsctl.daemon.marfile import (
    FORMATS,
    MANIFEST,
    ManifestError,
    PackError,
    Packing,
    external_files,
    parse_manifest,
    target_of,
    write_archive,
)
from tsctl.daemon.models.archives.unpack import Limits, model_root, unpack


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory with everything that an archive can hold."""
    files = {
        "handler.py": b"def handle(data, context): return data\n",
        "net.py": b"class Net: ...\n",
        "weights.pt": b"w" * 5000,
        "extra/labels.json": b"{}",
        "extra/deep/table.csv": b"1,2\n",
        "extra/__pycache__/x.pyc": b"",
        "requirements.txt": b"",
        "model-config.yaml": b"batchSize: 4\n",
    }
    (tmp_path / "out").mkdir()
    return write_files(tmp_path / "source", files)


def packing(source: Path, **changes: Any) -> Packing:
    values: dict[str, Any] = {"model_name": "m", "version": "1.0", "handler": str(source / "handler.py")}
    return Packing(**values | changes)


def contents(archive: Path) -> dict[str, bytes]:
    """Read an archive of any format as the daemon would: name → content."""
    directory = archive
    if archive.is_file():
        unpacked = archive.parent.parent / "unpacked"
        unpacked.mkdir()
        directory = model_root(unpack(archive, unpacked, Limits(10**6, 100)))
    found = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


@pytest.mark.parametrize(
    ("archive_format", "name"),
    [("default", "m.mar"), ("zip-store", "m.mar"), ("tgz", "m.tar.gz"), ("no-archive", "m")],
)
def test_every_format_is_named_after_the_model_and_holds_the_same_files(
    archive_format: str, name: str, source: Path, tmp_path: Path
) -> None:
    everything = packing(
        source,
        model_file=source / "net.py",
        serialized_file=source / "weights.pt",
        requirements_file=source / "requirements.txt",
        config_file=source / "model-config.yaml",
        extra_files=f"{source / 'extra'}",
    )

    archive = write_archive(everything, tmp_path / "out", archive_format=archive_format)

    assert archive == tmp_path / "out" / name
    assert [entry.name for entry in archive.parent.iterdir()] == [name], "nothing else is left there"
    if archive_format == "tgz":
        with tarfile.open(archive) as opened:
            assert {each.split("/")[0] for each in opened.getnames()} == {"m"}
    held = contents(archive)
    manifest = json.loads(held.pop(MANIFEST))
    assert held == {
        "handler.py": (source / "handler.py").read_bytes(),
        "net.py": b"class Net: ...\n",
        "weights.pt": b"w" * 5000,
        "requirements.txt": b"",
        "model-config.yaml": b"batchSize: 4\n",
        "labels.json": b"{}",
        "deep/table.csv": b"1,2\n",
    }
    assert manifest["model"] == {
        "modelName": "m",
        "serializedFile": "weights.pt",
        "handler": "handler.py",
        "modelFile": "net.py",
        "modelVersion": "1.0",
        "requirementsFile": "requirements.txt",
        "configFile": "model-config.yaml",
    }


def test_weights_are_stored_and_code_is_compressed(source: Path, tmp_path: Path) -> None:
    with pytest.raises(PackError, match="no directory at"):
        write_archive(packing(source), tmp_path / "missing")
    os.utime(source / "handler.py", (0, 0))  # a file from 1970 can be packed
    archive = write_archive(packing(source, serialized_file=source / "weights.pt"), tmp_path / "out")

    with zipfile.ZipFile(archive) as opened:
        methods = {info.filename: info.compress_type for info in opened.infolist()}
    assert methods["weights.pt"] == zipfile.ZIP_STORED
    assert methods["handler.py"] == zipfile.ZIP_DEFLATED


EXTRA = "{0}/*.yaml,{0}/requirements.txt,{0}/extra/deep"
OF_EXTRA = ["model-config.yaml", "requirements.txt", "table.csv"]
DEEP = ["extra/labels.json", "extra/deep/table.csv"]


@pytest.mark.parametrize(
    ("handler", "named", "extra", "kept", "held"),
    [
        *(pytest.param(name, name, "", "", [], id=f"{name}, built in, is no file")
          for name in ("base_handler", "image_classifier", "image_classifier:handle")),
        pytest.param("{0}/handler.py:handle", "handler.py:handle", "", "", ["handler.py"], id="its function"),
        pytest.param("{0}/handler.py", "handler.py", EXTRA, "", ["handler.py", *OF_EXTRA], id="patterns, folders"),
        pytest.param(
            "{0}/handler.py", "handler.py", "{0}/handler.py,{0}/handler.py", "", ["handler.py"], id="a file twice"),
        pytest.param(
            "{0}/handler.py", "handler.py", "{0}/extra", "extra", ["handler.py", *DEEP], id="a folder stays"),
    ],
)  # fmt: skip
def test_the_handler_and_extra_files(
    handler: str, named: str, extra: str, kept: str, held: list[str], source: Path, tmp_path: Path
) -> None:
    wanted = packing(source, handler=handler.format(source), extra_files=extra.format(source), kept=frozenset([kept]))

    found = contents(write_archive(wanted, tmp_path / "out"))

    assert json.loads(found[MANIFEST])["model"]["handler"] == named
    assert found.keys() == {MANIFEST, *held}


def test_an_unpacked_archive_can_be_packed_again(source: Path, tmp_path: Path) -> None:
    write_files(source / "extra", {MANIFEST: b"the old one"})

    held = contents(write_archive(packing(source, extra_files=str(source / "extra")), tmp_path / "out"))

    assert json.loads(held[MANIFEST])["model"]["modelName"] == "m"


@said_in("unpackable.txt")
def test_what_cannot_be_packed_is_a_sentence(given: str, source: Path, tmp_path: Path) -> str:
    changes = {name: Path(text) if name.endswith("_file") else text for name, text in json.loads(given).items()}
    said = reason(lambda: write_archive(packing(source, **changes), tmp_path / "out"), PackError)
    assert list((tmp_path / "out").iterdir()) == []
    return said


def test_two_files_may_not_want_the_same_place(source: Path, tmp_path: Path) -> None:
    other = write_files(tmp_path / "other", {"handler.py": b""}) / "handler.py"

    with pytest.raises(PackError, match=r"both `.*` and `.*` would be `handler.py` in the archive"):
        write_archive(packing(source, extra_files=str(other)), tmp_path / "out")


@pytest.mark.parametrize("archive_format", FORMATS)
def test_an_archive_in_the_way_is_replaced_only_by_force(archive_format: str, source: Path, tmp_path: Path) -> None:
    first = write_archive(packing(source), tmp_path / "out", archive_format=archive_format)
    before = first.stat().st_ino

    with pytest.raises(PackError, match="exists already; `--force` replaces it"):
        write_archive(packing(source), tmp_path / "out", archive_format=archive_format)
    assert first.stat().st_ino == before

    second = write_archive(packing(source), tmp_path / "out", archive_format=archive_format, force=True)
    assert second == first and second.stat().st_ino != before


@pytest.mark.parametrize("archive_format", FORMATS)
def test_a_folder_that_is_no_archive_is_never_deleted(archive_format: str, source: Path, tmp_path: Path) -> None:
    packed = packing(source)
    target = target_of(packed, tmp_path / "out", archive_format)
    precious = write_files(target, {"thesis.txt": b"years of work"}) / "thesis.txt"

    with pytest.raises(PackError, match="no archive to replace; move it, or rename the model"):
        write_archive(packed, tmp_path / "out", archive_format=archive_format, force=True)

    assert precious.read_bytes() == b"years of work"


@pytest.mark.parametrize("force", [False, True])
def test_nor_one_that_is_made_while_the_archive_is_packed(force: bool, source: Path, tmp_path: Path) -> None:
    packed = packing(source)
    theirs = target_of(packed, tmp_path / "out", "default") / "thesis.txt"

    def meanwhile(done: int, total: int) -> None:
        if done == total:
            write_files(theirs.parent, {theirs.name: b"years"})

    with pytest.raises(PackError, match="exists already" if not force else "is a folder without"):
        write_archive(packed, tmp_path / "out", force=force, progress=meanwhile)

    assert theirs.read_bytes() == b"years"


def test_a_link_to_an_archive_is_not_followed_to_delete_it(source: Path, tmp_path: Path) -> None:
    packed = packing(source)
    elsewhere = write_archive(packed, tmp_path / "out", archive_format="no-archive").rename(tmp_path / "elsewhere")
    target_of(packed, tmp_path / "out", "no-archive").symlink_to(elsewhere)

    with pytest.raises(PackError, match="no archive to replace"):
        write_archive(packed, tmp_path / "out", archive_format="no-archive", force=True)

    assert (elsewhere / "handler.py").is_file()


def test_progress_counts_the_bytes(source: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    size = (source / "handler.py").stat().st_size

    write_archive(
        packing(source, serialized_file=source / "weights.pt"),
        tmp_path / "out",
        progress=lambda done, total: told.append((done, total)),
    )

    assert told == [(size, size + 5000), (size + 5000, size + 5000)]


def test_a_manifest_is_read() -> None:
    document = manifest_document("resnet", "2.1", modelFile="net.py", serializedFile="w.pt", configFile="c.yaml")

    manifest = parse_manifest(document)

    assert (manifest.model_name, manifest.model_version, manifest.handler) == ("resnet", "2.1", "handler.py")
    assert (manifest.model_file, manifest.serialized_file, manifest.config_file) == ("net.py", "w.pt", "c.yaml")
    assert manifest.raw is document
    bare = parse_manifest({"model": {"modelName": "m", "modelFile": None, "extensions": {"any": "thing"}}})
    assert (bare.model_version, bare.handler, bare.model_file) == ("1.0", "", None)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ([], "Missing Model entry in manifest file."),
        ({"runtime": "python"}, "Model name is not defined. (The manifest has no `model`.)"),
        ({"model": "m"}, "Missing Model entry in manifest file."),
        ({"model": {}}, "Model name is not defined."),
        ({"model": {"modelName": 7}}, "The manifest's `modelName` is 7; expected a string."),
        ({"runtime": "java", "model": {"modelName": "m"}}, 'Runtime is not defined or invalid. (It is "java";'),
        ({"runtime": [], "model": {"modelName": "m"}}, "Runtime is not defined or invalid. (It is [];"),
    ],
)
def test_a_wrong_manifest_is_a_sentence(document: object, sentence: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_manifest(document)

    assert str(caught.value).startswith(sentence)


def write_external(path: Path, *names: str) -> None:
    """Write a file with the entries of tensors that are in other files, as ONNX has them among other bytes."""
    entries = [b"\x0a\x08location\x12" + bytes([len(name)]) + name.encode() for name in names]
    path.write_bytes(b"\x08\x0a" + b"\x12\x04junk".join(entries) + b"\x1a\x00")


def test_the_weights_that_an_onnx_model_keeps_apart_are_packed_and_stored(source: Path, tmp_path: Path) -> None:
    write_external(source / "net.onnx", "net.onnx.data", "more/big.bin", "net.onnx.data")
    (source / "more").mkdir()
    for name in ("net.onnx.data", "more/big.bin"):
        (source / name).write_bytes(b"0" * 1000)

    archive = write_archive(packing(source, serialized_file=source / "net.onnx"), tmp_path / "out")

    with zipfile.ZipFile(archive) as file:
        held = {each.filename: each.compress_type for each in file.infolist()}
    stored = {name: held[name] for name in ("net.onnx", "net.onnx.data", "more/big.bin")}
    assert set(stored.values()) == {zipfile.ZIP_STORED}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gone.data", "has weights in `gone.data`, and there is no such file beside it"),
        ("../net.data", "has weights in `../net.data`, which is not below its folder"),
        ("/net.data", "has weights in `/net.data`, which is not below its folder"),
    ],
)
def test_weights_that_cannot_be_packed_are_named(name: str, sentence: str, source: Path, tmp_path: Path) -> None:
    write_external(source / "net.onnx", name)

    with pytest.raises(PackError, match=re.escape(sentence)):
        write_archive(packing(source, serialized_file=source / "net.onnx"), tmp_path / "out")


@pytest.mark.slow
def test_the_files_are_those_that_onnx_itself_writes(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    values = [helper.make_tensor_value_info(name, floats, [4]) for name in ("x", "y")]
    weights = [helper.make_tensor(name, floats, [4], b"\0" * 16, raw=True) for name in ("w", "v")]
    nodes = [helper.make_node("Add", ["x", "w"], ["z"]), helper.make_node("Add", ["z", "v"], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:], weights))
    name = f"{'long-' * 30}.data"  # a length of two bytes

    onnx.save(model, tmp_path / "net.onnx", save_as_external_data=True, location=name, size_threshold=0)
    onnx.save(onnx.load(tmp_path / "net.onnx"), tmp_path / "whole.onnx")

    assert external_files(tmp_path / "net.onnx") == {name}
    assert external_files(tmp_path / "whole.onnx") == set()
    (tmp_path / "empty.onnx").touch()
    assert external_files(tmp_path / "empty.onnx") == set()
