"""A manifest is believed only as far as what it names is there."""

import json
from pathlib import Path
from typing import Any

import pytest

import tsctl
from tests.kit.archives import model_files, write_files
from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.marfile import MANIFEST
from tsctl.daemon.models.archives.manifest import bare_manifest, read_manifest
from tsctl.handlers.names import BUILT_IN


def read(directory: Path, files: dict[str, bytes], **given: Any) -> Any:
    values: dict[str, Any] = {"model_name": None, "handler": None} | given
    return read_manifest(write_files(directory / "model", files), **values)


def test_a_manifest_is_read(tmp_path: Path) -> None:
    manifest = read(tmp_path, model_files("resnet", "2.0"))

    assert (manifest.model_name, manifest.model_version, manifest.handler) == ("resnet", "2.0", "handler.py")


def test_the_registration_wins_over_the_manifest(tmp_path: Path) -> None:
    manifest = read(tmp_path, model_files(), model_name="mine", handler="base_handler", runtime="python3")

    assert (manifest.model_name, manifest.handler, manifest.runtime) == ("mine", "base_handler", "python3")
    assert manifest.raw["model"]["modelName"] == "mine"


def test_a_name_and_a_handler_are_a_manifest(tmp_path: Path) -> None:
    manifest = read(tmp_path, {"handler.py": b""}, model_name="mine", handler="handler.py:handle")

    assert (manifest.model_name, manifest.model_version, manifest.handler) == ("mine", "1.0", "handler.py:handle")


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


@pytest.mark.parametrize(
    "given", [{}, {"model_name": "m"}, {"handler": "handler.py"}], ids=["neither", "a name", "a handler"]
)
def test_less_is_not(given: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="Model name is not defined"):
        read(tmp_path, {"handler.py": b""}, **given)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="half of one"),
        pytest.param(b"\xff\xfe", id="bytes that are no text"),
        pytest.param(b"[" * 100_000, id="endless nesting"),
        pytest.param(b'{"model": {"modelName": "\\ud83c"}}', id="half an emoji"),
    ],
)
def test_what_is_no_json_is_refused(document: bytes, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="The manifest is not JSON"):
        read(tmp_path, {MANIFEST: document})


@pytest.mark.parametrize("document", [b"[]", b"7", b'{"model": null}', b'{"model": []}'])
def test_json_that_is_no_manifest_is_refused_whatever_is_given(document: bytes, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="Missing Model entry in manifest file"):
        read(tmp_path, {MANIFEST: document}, model_name="m", handler="base_handler")


@pytest.mark.parametrize("name", ["../m", "a/b", "", "-m", "m\n", "ü", "a b"])
def test_a_model_name_can_be_part_of_a_path_and_of_a_url(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"is no model name|Model name is not defined"):
        read(tmp_path, model_files(name))


@pytest.mark.parametrize("version", ["../1", "1/0", "-1", "1\n", "1 0"])
def test_so_can_a_version(version: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="is no model version"):
        read(tmp_path, model_files("m", version))


@pytest.mark.parametrize("version", ["1.0", "2024-01-01", "1.0+cu121", "v1_b"])
def test_versions_that_people_use(version: str, tmp_path: Path) -> None:
    assert read(tmp_path, model_files("m", version)).model_version == version


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


@pytest.mark.parametrize("handler", [*BUILT_IN, "image_classifier:handle", "handler.py", "handler:f", "src/handler.py"])
def test_a_handler_is_built_in_or_a_file_of_the_archive(handler: str, tmp_path: Path) -> None:
    assert read(tmp_path, model_files(handler=handler)).handler == handler


def test_a_handler_may_be_an_installed_module(tmp_path: Path) -> None:
    assert read(tmp_path, model_files(handler="pytest")).handler == "pytest"


@pytest.mark.parametrize("handler", ["no_such_handler", "missing.py", "a-b.py", "handler.pyc", ".py"])
def test_an_unknown_handler_is_a_sentence_with_the_known_ones(handler: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="built in are base_handler, vision_handler, image_classifier"):
        read(tmp_path, model_files(handler=handler))


def test_no_handler_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="The manifest names no handler"):
        read(tmp_path, model_files(handler=""))


@pytest.mark.parametrize("file", ["tsctl.py", "tsctl/__init__.py"])
def test_a_module_with_our_name_is_refused(file: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="holds a module `tsctl`, a name that tsctl itself uses"):
        read(tmp_path, model_files() | {file: b""})


@pytest.mark.parametrize("name", ["daemon", "handlers"])
@pytest.mark.parametrize("form", ["{}.py", "{}/__init__.py"])
def test_modules_with_the_names_of_our_folders_are_the_models_own(name: str, form: str, tmp_path: Path) -> None:
    assert read(tmp_path, model_files() | {form.format(name): b""}).model_name == "m"


def test_the_handler_itself_may_have_any_name(tmp_path: Path) -> None:
    files = model_files(handler="tsctl.py", modelFile="daemon.py") | {"tsctl.py": b"", "daemon.py": b""}

    assert read(tmp_path, files).handler == "tsctl.py"


def test_a_file_that_is_no_module_may_have_our_name(tmp_path: Path) -> None:
    assert read(tmp_path, model_files() | {"tsctl.json": json.dumps({}).encode()}).model_name == "m"


BARE = {
    "sentiment.py": b"from clean import words\ndef handle(data, context): return data\n",
    "clean.py": b"words = 1\n",
}


def read_bare(directory: Path, files: dict[str, bytes], url: str = "sentiment.py", **given: str | None) -> Any:
    folder = write_files(directory / "folder", files)
    values = {"model_name": None, "handler": None} | given
    return read_manifest(folder, **values, inferred=bare_manifest(folder, str(folder / url)))


def test_the_manifest_of_a_single_file_is_inferred(tmp_path: Path) -> None:
    manifest = read_bare(tmp_path, BARE)

    assert (manifest.model_name, manifest.model_version, manifest.handler) == ("sentiment", "1.0", "sentiment.py")


def test_the_registration_wins_over_what_is_inferred(tmp_path: Path) -> None:
    manifest = read_bare(tmp_path, {"net.onnx": b""}, "net.onnx", model_name="mine", handler="image_classifier")

    assert (manifest.model_name, manifest.handler, manifest.serialized_file) == ("mine", "image_classifier", "net.onnx")


def test_a_manifest_beside_a_single_file_is_not_its_own(tmp_path: Path) -> None:
    assert read_bare(tmp_path, BARE | model_files("other")).model_name == "sentiment"


def test_a_file_of_an_archive_is_no_single_file(tmp_path: Path) -> None:
    write_files(tmp_path, model_files())

    assert bare_manifest(tmp_path, "/store/m.mar") is None
    assert bare_manifest(tmp_path, "/store/gone.py") is None


def test_a_single_file_that_cannot_be_served_is_a_sentence_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"no \.py file beside it .*; write the class into `net\.py`, or .*\.$"):
        read_bare(tmp_path, {"net.pth": b""}, "net.pth")


@pytest.mark.parametrize("name", ["daemon", "handlers", "tsctl"])
def test_a_folder_of_ones_own_may_hold_any_module(name: str, tmp_path: Path) -> None:
    files = BARE | {f"{name}/__init__.py": b"", f"{name}.py": b""}

    assert read_bare(tmp_path, files).model_name == "sentiment"


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


@pytest.mark.parametrize("handler", ["app.net:Net", "app.net:predict"])
def test_a_handler_may_be_a_module_in_a_package(handler: str, tmp_path: Path) -> None:
    manifest = read(tmp_path, {"app/net.py": b"raise SystemExit"}, model_name="m", handler=handler)

    assert manifest.handler == handler


@pytest.mark.parametrize("handler", ["app.gone:f", ".net:f", "app.:f", "a-b.net:f"])
def test_a_handler_in_a_package_that_is_missing_is_unknown(handler: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="Unknown handler"):
        read(tmp_path, {"app/net.py": b""}, model_name="m", handler=handler)


@pytest.mark.parametrize("handler", ["trt_llm_handler", "dali_image_classifier"])
def test_a_handler_that_only_torchserve_has_is_refused_with_what_does_its_work(handler: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=f"TorchServe's handler `{handler}` is not built in here: .+"):
        read(tmp_path, {"x.py": b""}, model_name="m", handler=handler)
