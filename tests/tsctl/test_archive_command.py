"""`tsctl archive`."""

import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.tsctl.conftest import Invoke
from tsctl.daemon.marfile import MANIFEST

REQUIRED = ("--name", "net", "--version", "1.0")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model's files in the working directory."""
    work = tmp_path / "work"
    (work / "more" / "inner").mkdir(parents=True)
    (work / "out").mkdir()
    for name in (
        "mine.py",
        "net.py",
        "weights.pth",
        "more/labels.json",
        "more/inner/x.txt",
        "requirements.txt",
        "c.yaml",
    ):
        (work / name).write_text(f"# {name}\n")
    monkeypatch.chdir(work)
    return work


def manifest_in(archive: Path) -> dict[str, Any]:
    with zipfile.ZipFile(archive) as file:
        manifest: dict[str, Any] = json.loads(file.read(MANIFEST))
    return manifest


def sentence(result: Result) -> str:
    return result.stderr.removeprefix("error: ").rstrip("\n")


def test_the_path_is_on_stdout_and_the_rest_on_stderr(invoke: Invoke) -> None:
    result = invoke("archive", *REQUIRED, "--handler", "mine.py")

    assert result.exit_code == 0
    assert result.stdout == "net.mar\n"
    assert result.stderr == "Packed `net` 1.0\n"


def test_every_flag_of_torch_model_archiver_reaches_the_manifest(invoke: Invoke, files: Path) -> None:
    result = invoke(
        *("archive", "--model-name", "net", "-v", "2.1", "--handler", "mine.py:predict"),
        *("--model-file", "net.py", "--serialized-file", "weights.pth", "--extra-files", "more,net.py"),
        *("-r", "requirements.txt", "-c", "c.yaml", "--runtime", "python3", "--export-path", "out"),
    )

    assert result.exit_code == 0, result.stderr
    manifest = manifest_in(files / "out" / "net.mar")
    assert manifest["runtime"] == "python3"
    assert manifest["model"] == {
        "modelName": "net",
        "modelVersion": "2.1",
        "handler": "mine.py:predict",
        "modelFile": "net.py",
        "serializedFile": "weights.pth",
        "requirementsFile": "requirements.txt",
        "configFile": "c.yaml",
    }


def test_the_runtime_of_cpp_handlers_is_refused_with_the_way_forward(invoke: Invoke) -> None:
    result = invoke("archive", *REQUIRED, "--handler", "mine.py", "--runtime", "LSP")

    assert result.exit_code == 2
    assert "`LSP` handlers are C++, which is not served here; write the handler in Python" in result.stderr


def in_zip(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as file:
        return file.namelist()


def test_the_format_is_that_of_the_option(invoke: Invoke, files: Path) -> None:
    result = invoke("archive", *REQUIRED, "--handler", "mine.py", "--archive-format", "tgz")

    assert result.stdout == "net.tar.gz\n"
    assert tarfile.is_tarfile(files / "net.tar.gz")


@pytest.mark.parametrize("flag", ["--force", "-f"])
def test_an_archive_that_exists_is_kept_but_for_force(invoke: Invoke, files: Path, flag: str) -> None:
    (files / "net.mar").write_text("precious")

    kept = invoke("archive", *REQUIRED, "--handler", "mine.py")
    assert (kept.exit_code, kept.stdout) == (1, "")
    assert sentence(kept) == "`net.mar` exists already; `--force` replaces it"
    assert (files / "net.mar").read_text() == "precious"

    assert invoke("archive", *REQUIRED, "--handler", "mine.py", flag).exit_code == 0
    assert manifest_in(files / "net.mar")["model"]["modelName"] == "net"


def test_torchserves_handlers_that_are_not_built_in_are_named(invoke: Invoke) -> None:
    result = invoke("archive", *REQUIRED, "--handler", "trt_llm_handler")

    assert result.exit_code == 1
    assert sentence(result).startswith("TorchServe's handler `trt_llm_handler` is not built in here: TensorRT")


@pytest.mark.parametrize("missing", ["--name", "--version", "--handler"])
def test_what_is_required_is_required(invoke: Invoke, missing: str) -> None:
    given = {"--name": "net", "--version": "1.0", "--handler": "mine.py"}
    del given[missing]

    result = invoke("archive", *(word for pair in given.items() for word in pair))

    assert result.exit_code == 2
    assert missing in result.stderr


def test_a_handler_is_packed_with_no_further_option(invoke: Invoke, files: Path) -> None:
    (files / "mine.py").write_text("import clean\nfrom app import parts\ndef handle(data, context): ...\n")
    (files / "clean.py").write_text("")
    (files / "app").mkdir()
    (files / "app" / "parts.py").write_text("")
    (files / "index_to_name.json").write_text("{}")

    result = invoke("archive", "mine.py")

    assert result.stdout == "mine.mar\n", result.stderr
    assert manifest_in(files / "mine.mar")["model"]["handler"] == "mine.py"
    assert {"mine.py", "clean.py", "app/parts.py", "index_to_name.json"} <= set(in_zip(files / "mine.mar"))


@pytest.mark.parametrize(("handler", "packed"), [("image_classifier", True), ("base_handler", False)])
def test_the_files_that_say_how_images_are_prepared_are_packed_for_the_handlers_that_read_them(
    invoke: Invoke, files: Path, handler: str, packed: bool
) -> None:
    for name in ("model.onnx", "config.json", "preprocessor_config.json"):
        (files / name).write_text("{}")

    result = invoke("archive", "model.onnx", "--handler", handler, "--name", "net")

    assert result.exit_code == 0, result.stderr
    assert ({"config.json", "preprocessor_config.json"} <= set(in_zip(files / "net.mar"))) is packed


def test_what_a_handler_opens_beside_itself_is_packed_with_its_folders_and_named(invoke: Invoke, files: Path) -> None:
    (files / "mine.py").write_text("""
from pathlib import Path
LABELS = (Path(__file__).parent / "more" / "labels.json").read_text()
def handle(data, context):
    return [open("words.txt").read() for _ in data]
""")
    (files / "words.txt").write_text("")

    result = invoke("archive", "mine.py")

    assert {"mine.py", "more/labels.json", "words.txt"} <= set(in_zip(files / "mine.mar"))
    assert "more/inner/x.txt" not in in_zip(files / "mine.mar")
    assert result.stderr == "Packed `mine` 1.0, with `more/labels.json`, `words.txt`\n"


def test_what_a_handler_opens_elsewhere_is_named_in_the_refusal(invoke: Invoke, files: Path) -> None:
    (files.parent / "shared.txt").write_text("")
    (files / "mine.py").write_text("words = open('../shared.txt')\ndef handle(data, context): ...\n")

    result = invoke("archive", "mine.py")

    assert (result.exit_code, (files / "mine.mar").exists()) == (1, False)
    assert sentence(result).startswith("`mine.py` names `../shared.txt`, which is not below its folder")


@pytest.mark.parametrize(
    ("handler", "config", "expected"),
    [
        ("", "", "labels.json"),
        ("", "warmup: more\n", "more/labels.json"),
        ("open('more/labels.json')\n", "", "more/labels.json"),
    ],
    ids=["at the root as by torch-model-archiver", "named by the configuration", "named by the handler"],
)
def test_a_folder_of_extra_files_is_a_folder_where_it_is_named(
    invoke: Invoke, files: Path, handler: str, config: str, expected: str
) -> None:
    (files / "mine.py").write_text(handler + "def handle(data, context): ...\n")
    (files / "c.yaml").write_text(config)

    invoke("archive", *REQUIRED, "--handler", "mine.py", "--extra-files", "more", "-c", "c.yaml")

    assert {name for name in in_zip(files / "net.mar") if name.endswith("labels.json")} == {expected}


def test_weights_are_packed_with_their_model_file(invoke: Invoke, files: Path) -> None:
    (files / "net.py").write_text("from torch import nn\nclass Net(nn.Module): ...\n")

    invoke("archive", "weights.pth")

    model = manifest_in(files / "weights.mar")["model"]
    assert model == {
        "modelName": "weights", "modelVersion": "1.0", "handler": "base_handler",
        "modelFile": "net.py", "serializedFile": "weights.pth",
    }  # fmt: skip


def test_an_option_wins_over_what_is_inferred(invoke: Invoke, files: Path) -> None:
    (files / "mine.py").write_text("def predict(texts): ...\n")

    invoke("archive", "mine.py:predict", "--name", "net", "--version", "2.0", "--serialized-file", "weights.pth")

    model = manifest_in(files / "net.mar")["model"]
    assert model == {
        "modelName": "net", "modelVersion": "2.0", "handler": "mine.py:predict", "serializedFile": "weights.pth",
    }  # fmt: skip


def test_an_archive_is_not_packed_again(invoke: Invoke, files: Path) -> None:
    (files / "net.mar").write_text("")

    result = invoke("archive", "net.mar")

    assert sentence(result) == (
        "`net.mar` is not a handler or a model file\nhint: name a file, such as handler.py or model.pt"
    )
