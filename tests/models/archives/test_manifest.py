"""A manifest is believed only as far as what it names is there."""

import json
from pathlib import Path
from typing import Any

import pytest

import tsctl
from tests.kit.archives import model_files, write_files
from tests.kit.said import said_in
from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.marfile import MANIFEST
from tsctl.daemon.models.archives.manifest import bare_manifest, read_manifest
from tsctl.handlers.names import BUILT_IN


def read(directory: Path, files: dict[str, bytes], **given: Any) -> Any:
    values: dict[str, Any] = {"model_name": None, "handler": None} | given
    return read_manifest(write_files(directory / "model", files), **values)


@pytest.mark.parametrize(
    ("manifest", "given", "handler"),
    [
        pytest.param({"handler": ""}, None, "image_classifier", id="stands in where nobody names one"),
        pytest.param({"handler": "base_handler"}, None, "base_handler", id="gives way to the manifest's"),
        pytest.param({"handler": ""}, "base_handler", "base_handler", id="gives way to the registration's"),
        pytest.param(None, None, "image_classifier", id="stands in where there is no manifest"),
    ],
)
def test_the_default_handler(manifest: dict[str, str] | None, given: str | None, handler: str, tmp_path: Path) -> None:
    if manifest is not None:
        write_files(tmp_path, model_files(**manifest))

    read = read_manifest(tmp_path, model_name="m", handler=given, default_handler="image_classifier")

    assert read.handler == handler


@pytest.mark.parametrize("key", ["modelFile", "serializedFile", "configFile"])
def test_a_file_that_is_named_must_be_there(key: str, tmp_path: Path) -> None:
    files = model_files(**{key: "named.bin"})

    with pytest.raises(InvalidModel, match=r"names the file `named.bin`, which the archive does not contain"):
        read(tmp_path / "without", files)
    assert read(tmp_path / "with", files | {"named.bin": b""}).model_name == "m"


def test_a_file_is_not_looked_for_outside(tmp_path: Path) -> None:
    (tmp_path / "secret.pt").touch()

    with pytest.raises(InvalidModel, match="the archive does not contain"):
        read(tmp_path, model_files(serializedFile="../secret.pt"))


@said_in("manifests.txt")
def test_a_manifest_is_read_or_refused_with_a_sentence(given: str, tmp_path: Path) -> str:
    told = json.loads(given)
    files = model_files(**told["manifest"]) if "manifest" in told else {}
    files |= {name: text.encode() for name, text in told.get("files", {}).items()}
    try:
        manifest = read(tmp_path, files, runtime="python3", **told.get("given", {}))
    except InvalidModel as error:
        return str(error)
    assert manifest.runtime == "python3"
    assert MANIFEST not in files or manifest.raw["model"]["modelName"] == manifest.model_name
    return f"{manifest.model_name} {manifest.model_version} {manifest.handler}"


NAMES = ("modelName", "modelVersion", "handler", "modelFile", "serializedFile", "configFile", "requirementsFile")


@pytest.mark.parametrize("key", NAMES)
@pytest.mark.parametrize("name", ["n" * 251, "é" * 126, ["n"] * 30_000], ids=["letters", "bytes", "a list"])
def test_a_name_that_no_file_can_have_is_refused_in_a_sentence(key: str, name: Any, tmp_path: Path) -> None:
    document = {"model": {"modelName": "m", "handler": "base_handler"} | {key: name}}

    with pytest.raises(
        InvalidModel, match=f"^The manifest's `{key}` (has 25[12] bytes; at most 250 are|is .+ expected)"
    ):
        read(tmp_path, {MANIFEST: json.dumps(document).encode()})


def test_of_a_file_the_last_part_counts_however_long_the_path_is_that_it_was_packed_from(tmp_path: Path) -> None:
    path = f"/{'build/' * 100}net.pt"

    assert read(tmp_path, model_files(serializedFile=path) | {"net.pt": b""}).serialized_file == path


@pytest.mark.parametrize("document", [
    {"model": {"handler": "base_handler", "modelFile": "build/" * 30_000 + "m.py"}},
    {"runtime": "r" * 200_000, "model": {}}, {"model": {"modelName": ["n"] * 30_000}}, {"model": {"k" * 200_000: 1}},
])  # fmt: skip
def test_what_is_shown_of_a_wrong_manifest_is_bounded(document: dict[str, Any], tmp_path: Path) -> None:
    document["model"].setdefault("modelName", "m")

    with pytest.raises(InvalidModel) as raised:
        read(tmp_path, {MANIFEST: json.dumps(document).encode()})
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("handler", BUILT_IN)
def test_a_built_in_handler_is_served(handler: str, tmp_path: Path) -> None:
    assert read(tmp_path, model_files(handler=handler)).handler == handler


NO_JSON = {
    "nothing": b"", "half of one": b"{", "bytes that are no text": b"\xff\xfe", "endless nesting": b"[" * 100_000,
    "half an emoji": b'{"model": {"modelName": "\\ud83c"}}',
}  # fmt: skip


@pytest.mark.parametrize("text", NO_JSON.values(), ids=NO_JSON)
def test_a_manifest_that_is_no_json_is_refused(text: bytes, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="The manifest is not JSON"):
        read(tmp_path, {MANIFEST: text})


BARE = {
    "sentiment.py": b"from clean import words\ndef handle(data, context): return data\n",
    "clean.py": b"words = 1\n",
}


def read_bare(directory: Path, files: dict[str, bytes], url: str = "sentiment.py", **given: str | None) -> Any:
    folder = write_files(directory / "folder", files)
    values = {"model_name": None, "handler": None} | given
    return read_manifest(folder, **values, inferred=bare_manifest(folder, str(folder / url)))


def test_a_file_of_an_archive_is_no_single_file(tmp_path: Path) -> None:
    write_files(tmp_path, model_files())

    assert bare_manifest(tmp_path, "/store/m.mar") is None
    assert bare_manifest(tmp_path, "/store/gone.py") is None


@pytest.mark.parametrize(
    ("more", "url", "given", "read_as"),
    [
        pytest.param({}, "sentiment.py", {}, ("sentiment", "sentiment.py", None), id="inferred"),
        pytest.param(model_files("other"), "sentiment.py", {}, ("sentiment", "sentiment.py", None), id="not its own"),
        pytest.param(
            {"net.onnx": b"x"}, "net.onnx", {"model_name": "mine", "handler": "image_classifier"},
            ("mine", "image_classifier", "net.onnx"), id="the registration wins"),
        *(pytest.param({f"{name}/__init__.py": b"", f"{name}.py": b""}, "sentiment.py", {},
                       ("sentiment", "sentiment.py", None), id=f"beside {name}")
          for name in ("daemon", "handlers", "tsctl")),
    ],
)  # fmt: skip
def test_the_manifest_of_a_single_file(
    more: dict[str, bytes], url: str, given: dict[str, str], read_as: tuple[str, str, str | None], tmp_path: Path
) -> None:
    manifest = read_bare(tmp_path, BARE | more, url, **given)

    assert (manifest.model_name, manifest.handler, manifest.serialized_file or None) == read_as
    assert manifest.model_version == "1.0"


def test_a_single_file_that_cannot_be_served_is_a_sentence_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"no \.py file beside it .*; write the class into `net\.py`, or .*\.$"):
        read_bare(tmp_path, {"net.pth": b"x"}, "net.pth")


@pytest.mark.parametrize("taken", ["tsctl.py", "tsctl/base.py"])
@pytest.mark.parametrize("importing", ["sentiment.py", "clean.py"])
def test_a_module_that_a_worker_would_take_for_tsctls_is_refused(importing: str, taken: str, tmp_path: Path) -> None:
    files = BARE | {taken: b"", importing: BARE[importing] + b"from tsctl.base import Base\n"}

    with pytest.raises(InvalidModel, match=r"sentiment.py imports `tsctl`, .* rename `tsctl"):
        read_bare(tmp_path, files)


def test_tsctls_own_package_beside_a_file_is_no_other_one(tmp_path: Path) -> None:
    files = BARE | {"clean.py": b"from tsctl.handlers.builtin import BaseHandler\nwords = 1\n"}
    write_files(tmp_path / "folder", files)
    (tmp_path / "folder" / "tsctl").symlink_to(Path(tsctl.__file__).parent)

    assert read_bare(tmp_path, files).model_name == "sentiment"
