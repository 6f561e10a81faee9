"""A target is read from its name and its files: what is served, under which name, by which handler."""

import json
import zipfile
from pathlib import Path

import pytest

from tests.kit.archives import write_files
from tests.kit.said import said_in
from tests.models.archives.hostile import zip_of_a_million
from tsctl.daemon.marfile import MANIFEST, NAME
from tsctl.daemon.server import extensions
from tsctl.daemon.targets import ServeTarget, TargetError, model_name_of, read_target
from tsctl.daemon.targets.source import is_handler

NET = b"from torch import nn\nclass Net(nn.Module):\n    pass\n"
HANDLE = b"def handle(data, context):\n    return data\n"


def torchscript(path: Path) -> Path:
    """Write the part of a TorchScript file that tells it from weights."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{path.stem}/constants.pkl", b"")
    return path


def weights(path: Path) -> Path:
    """Write the part of a file of `torch.save` that tells it from TorchScript."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{path.stem}/data.pkl", b"")
    return path


def refused(text: str, directory: Path) -> TargetError:
    with pytest.raises(TargetError) as caught:
        read_target(text, directory)
    return caught.value


def test_a_handler_is_a_file_of_python(tmp_path: Path) -> None:
    write_files(tmp_path, {"sentiment.py": HANDLE})

    target = read_target("sentiment.py", tmp_path)

    file = tmp_path / "sentiment.py"
    assert target == ServeTarget(
        kind="handler", url=str(file), path=file, model_name="sentiment", version="1.0", handler="sentiment.py"
    )


@pytest.mark.parametrize(
    ("function", "name"),
    [
        pytest.param("french", "french", id="a function's name is the model's"),
        pytest.param("handle", "sentiment", id="unless every handler has that name"),
    ],
)
def test_a_function_of_a_file(function: str, name: str, tmp_path: Path) -> None:
    write_files(tmp_path, {"sentiment.py": f"def {function}(texts): ...\n".encode()})

    target = read_target(f"sentiment.py:{function}", tmp_path)

    assert target.url == f"{tmp_path}/sentiment.py:{function}"
    assert (target.model_name, target.handler) == (name, f"sentiment.py:{function}")


@pytest.mark.parametrize("name", ["net.pt", "net.pt2", "net.onnx"])
def test_a_whole_model_needs_no_other_file(name: str, tmp_path: Path) -> None:
    torchscript(tmp_path / name)

    target = read_target(name, tmp_path)

    assert (target.kind, target.model_name, target.handler) == ("model", "net", "base_handler")
    assert (target.serialized_file, target.model_file) == (name, None)


@pytest.mark.parametrize("name", ["net.pth", "net.pt"])
@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        pytest.param({"arch.py": NET, "train.py": b"print()\n"}, "arch.py", id="the only one with a module class"),
        pytest.param({"net.py": NET, "arch.py": NET}, "net.py", id="the one of the same name"),
        pytest.param({"model.py": NET, "arch.py": NET}, "model.py", id="model.py"),
        pytest.param({"a.py": NET + b"class Big(Net): pass\n"}, "a.py", id="a base class beside its class"),
        pytest.param(
            {"a.py": b"from torchvision.models import ResNet\nclass Net(ResNet): pass\n"}, "a.py", id="of torchvision"
        ),
    ],
)
def test_weights_take_the_model_file_beside_them(
    name: str, files: dict[str, bytes], chosen: str, tmp_path: Path
) -> None:
    write_files(tmp_path, files)
    weights(tmp_path / name)

    target = read_target(name, tmp_path)

    assert (target.handler, target.model_file, target.serialized_file) == ("base_handler", chosen, name)


def test_a_handler_has_the_only_model_beside_it(tmp_path: Path) -> None:
    write_files(tmp_path, {"mine.py": HANDLE, "net.py": NET, "model-config.yaml": b"batchSize: 2\n"})
    weights(tmp_path / "net.pth")

    manifest = read_target("mine.py", tmp_path).manifest()

    assert manifest["model"] == {
        "modelName": "mine", "modelVersion": "1.0", "handler": "mine.py",
        "modelFile": "net.py", "serializedFile": "net.pth", "configFile": "model-config.yaml",
    }  # fmt: skip
    torchscript(tmp_path / "b.pt")
    assert read_target("mine.py", tmp_path).serialized_file is None, "of two it has none"


@pytest.mark.parametrize(
    ("files", "served"),
    [
        pytest.param({"handler.py": HANDLE, "other.py": b""}, "handler.py", id="handler.py"),
        pytest.param({"m.onnx": b"x", "train.py": b""}, "m.onnx", id="its only model"),
        pytest.param({"mine.py": HANDLE, "notes.txt": b""}, "mine.py", id="its only Python file"),
        pytest.param({"m.onnx": b"x", "mine.py": HANDLE}, "mine.py", id="the handler of its only model"),
        pytest.param({"m.onnx": b"x", "mine.py": HANDLE, "train.py": b""}, "mine.py", id="its only handler"),
        pytest.param({"a.pt": b"PK", "b.pt": b"PK", "mine.py": HANDLE}, "mine.py", id="a handler of two models"),
        pytest.param({"net.py": NET, "mine.py": HANDLE, "net.pth": b"x"}, "mine.py", id="a handler beside a class"),
        pytest.param({"net.py": NET, "net.pth": b"x"}, "net.pth", id="a model and its class"),
    ],
)
def test_a_directory_is_what_is_in_it_under_its_own_name(files: dict[str, bytes], served: str, tmp_path: Path) -> None:
    write_files(tmp_path / "my net", files)

    target = read_target("my net", tmp_path)

    assert (target.url, target.model_name) == (str(tmp_path / "my net" / served), "my-net")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("mood/handler.py", "mood"), ("shop/app.py", "shop"), ("my net/main.py", "my-net"),
        ("resnet/model.onnx", "resnet"), ("mood/mine.py", "mine"),
        ("mood/handler.py:score", "score"), ("mood/handler.py:predict", "mood"),
        ("app/handler.py", "handler"), ("model/model.onnx", "model"),
    ],
)  # fmt: skip
def test_a_file_whose_name_tells_nothing_has_its_folders_name(file: str, name: str, tmp_path: Path) -> None:
    write_files(tmp_path, {file.partition(":")[0]: b"def predict(n: int) -> int: ...\ndef score(n: int) -> int: ...\n"})

    assert read_target(file, tmp_path).model_name == name


@pytest.mark.parametrize(
    ("source", "served"),
    [
        ("def handle(data, context): ...", True),
        ("async def predict(n: int): ...", True),
        ("class Mine:\n    def predict(self, n): ...", True),
        ("class Mine(ImageClassifier): ...", True),
        ("class Mine(base.BaseHandler):\n    topk = 3", True),
        ("import torch\nclass Net(torch.nn.Module):\n    def predict(self, x): ...", False),
        ("def train(): ...", False),
        ("x =", False),
    ],
)
def test_a_handler_is_known_by_what_it_defines(source: str, served: bool, tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(source)

    assert is_handler(tmp_path / "f.py") is served


@pytest.mark.parametrize("inside", ["", "m/"], ids=["at its top", "one folder down"])
def test_a_directory_with_a_manifest_is_an_archive(inside: str, tmp_path: Path) -> None:
    write_files(tmp_path / "d", {f"{inside}{MANIFEST}": b"{}", f"{inside}handler.py": b""})

    target = read_target("d", tmp_path)

    assert (target.kind, target.inferred) == ("archive", False)


@pytest.mark.parametrize("name", ["m.mar", "m.tar.gz", "m.zip"])
def test_an_archive_has_a_manifest_of_its_own(name: str, tmp_path: Path) -> None:
    write_files(tmp_path, {name: b"PK\x03\x04"})

    assert read_target(name, tmp_path) == ServeTarget(kind="archive", url=str(tmp_path / name), path=tmp_path / name)


def test_a_path_through_the_parent_is_the_file_itself(tmp_path: Path) -> None:
    write_files(tmp_path, {"m.mar": b"PK\x03\x04", "below/handler.py": HANDLE})
    file = tmp_path.resolve() / "m.mar"

    assert read_target("../m.mar", tmp_path / "below") == ServeTarget(kind="archive", url=str(file), path=file)


def test_an_archive_may_come_from_a_url(tmp_path: Path) -> None:
    assert read_target("https://host/m.mar", tmp_path) == ServeTarget(kind="url", url="https://host/m.mar")


@pytest.mark.parametrize(
    ("text", "files", "handler", "name"),
    [
        pytest.param("pytest:Module", {}, "pytest:Module", "Module", id="installed"),
        pytest.param("email.parser:Parser", {}, "email.parser:Parser", "Parser", id="in an installed package"),
        pytest.param("app.net:predict", {"app/net.py": b""}, "app.net:predict", "net", id="below the directory"),
    ],
)
def test_a_module_and_an_attribute(text: str, files: dict[str, bytes], handler: str, name: str, tmp_path: Path) -> None:
    target = read_target(text, write_files(tmp_path, files))

    assert (target.kind, target.url) == ("module", str(tmp_path))
    assert (target.handler, target.model_name) == (handler, name)


def test_a_module_of_the_directory_is_its_file(tmp_path: Path) -> None:
    write_files(tmp_path, {"mine.py": HANDLE})

    assert read_target("mine:handle", tmp_path) == read_target("mine.py:handle", tmp_path)


def test_reading_a_module_imports_nothing(tmp_path: Path) -> None:
    write_files(tmp_path, {"app/__init__.py": b"raise SystemExit", "app/net.py": b"raise SystemExit"})

    assert read_target("app.net:Net", tmp_path).handler == "app.net:Net"


@said_in("refusals.txt")
def test_a_refusal_names_the_target_and_the_remedy(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(extensions, "EXTENSIONS", ())  # whose schemes are served, too
    asked = json.loads(given)
    error = refused(asked["target"], write_files(tmp_path, {k: v.encode() for k, v in asked["files"].items()}))
    return f"{error.message}\nhint: {error.hint}".replace(str(tmp_path), "FOLDER")


def test_torchscript_under_the_name_of_weights_is_told(tmp_path: Path) -> None:
    torchscript(tmp_path / "net.pth")

    assert refused("net.pth", tmp_path).hint == "rename it to `net.pt`"


def saved(path: Path, *members: str) -> None:
    """Make a file as torch does."""
    with zipfile.ZipFile(path, "w") as archive:
        for member in ("data.pkl", "version", *members):
            archive.writestr(f"{path.stem}/{member}", b"")


@pytest.mark.parametrize("name", ["epoch3.ckpt", "epoch3.bin", "epoch3.pth.tar", "epoch3.model", "epoch3"])
def test_a_checkpoint_is_no_archive_whatever_its_name(name: str, tmp_path: Path) -> None:
    saved(tmp_path / name)

    error = refused(name, tmp_path)

    assert error.message.startswith(f"`{name}` holds what `torch.save` wrote")
    assert "as `epoch3.pth`, with the .py file of its class" in error.hint


def test_a_checkpoint_of_an_early_torch_is_known_too(tmp_path: Path) -> None:
    write_files(tmp_path, {"old.bin": b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80"})

    assert "holds what `torch.save` wrote" in refused("old.bin", tmp_path).message


def test_torchscript_under_another_name_is_told(tmp_path: Path) -> None:
    saved(tmp_path / "model.jit", "constants.pkl")

    error = refused("model.jit", tmp_path)

    assert (error.message, error.hint) == ("`model.jit` is a TorchScript file", "rename it to `model.pt`")


@pytest.mark.parametrize(("name", "kind"), [("many.zip", "archive"), ("many.pt", "model")])
def test_a_zip_with_more_members_than_a_model_has_tensors_is_not_looked_into(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(zip_of_a_million())
    monkeypatch.setattr(zipfile, "ZipInfo", lambda *_: pytest.fail("a member was read"))

    assert read_target(name, tmp_path).kind == kind


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("handler", "handler"), ("my net (1)", "my-net-1"), ("resnet18.v2", "resnet18.v2"), ("_private", "private"),
        ("modèle", "modele"), ("模型", "model"), ("...", "model"), ("-", "model"), ("a" * 300, "a" * 64),
    ],
)  # fmt: skip
def test_a_file_name_becomes_a_model_name(stem: str, name: str) -> None:
    assert model_name_of(stem) == name
    assert NAME.fullmatch(name)
