"""Documented archives are read from pages, their files found in a checkout, and what is missing is named."""

from pathlib import Path

import pytest

from tests.lab.torchserve.examples.archives import archives, find, locate, parse, written
from tests.lab.torchserve.examples.table import Sample, request_of, sample_for, unjudged
from tests.lab.torchserve.examples.weights import make

LINE = (
    "torch-model-archiver --model-name net --version 1.0 --model-file model.py --serialized-file net.pth \\\n --handler"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "examples" / "net"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(f"```\n{LINE} handler.py:run --extra-files a.json,../b.json -c c.yaml\n```\n")
    for name in ("model.py", "handler.py", "a.json", "../b.json"):
        (folder / name).touch()
    return tmp_path


def test_an_archive_is_what_its_command_packs(root: Path) -> None:
    (archive,) = archives(root)

    assert archive.name == "examples/net/README.md:2 net"
    assert archive.files == {"model-file": "model.py", "serialized-file": "net.pth", "config-file": "c.yaml"}
    assert archive.extra == ("a.json", "../b.json")


def test_files_that_the_checkout_lacks_are_named(root: Path) -> None:
    (archive,) = archives(root)
    found = locate(archive, root)

    assert found.missing == ("net.pth", "c.yaml")
    assert found.handler == f"{root}/examples/net/handler.py:run"
    assert found.extra == (root / "examples" / "net" / "a.json", root / "examples" / "b.json")


@pytest.mark.parametrize(
    "words",
    ["--version 1.0", "--model-name PLACEHOLDER --handler h.py", "--model-name $NAME --handler h.py", "--no-such x"],
)
def test_a_pattern_of_a_command_is_no_archive(words: str, tmp_path: Path) -> None:
    assert parse("page:1", tmp_path, words.split()) is None


@pytest.mark.parametrize(
    "text", ["model.py", "./model.py", "examples/net/model.py", "./serve/examples/net/model.py", "net/model.py"]
)
def test_a_file_is_found_from_wherever_its_command_is_typed(root: Path, text: str) -> None:
    assert find(text, root / "examples" / "net", root) == root / "examples" / "net" / "model.py"


def test_no_file_is_found_above_the_checkout(root: Path) -> None:
    (root.parent / "outside.py").touch()
    assert find("outside.py", root / "examples" / "net", root) is None


def test_a_page_may_have_its_reader_write_a_file(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text('echo "pt2:\n  compile:\n    enable: True" > model-config.yaml\n')

    assert written(page, "./model-config.yaml") == "pt2:\n  compile:\n    enable: True"
    assert written(page, "config.yaml") is None


def test_a_case_is_asked_with_the_first_sample_that_fits() -> None:
    mnist, image = sample_for("mnist_handler.py image"), sample_for("image_classifier resnet")
    assert mnist is not None and mnist.path.endswith("0.png")
    assert image is not None and image.path.endswith("kitten.jpg")
    assert sample_for("llm") is None


@pytest.mark.parametrize(
    ("form", "body", "headers"),
    [
        ("", b"\xff\xfe", {}),
        ("{}", b"//4=", {}),
        ("a={}&b=c", b"a=//4%3D&b=c", {"Content_Type": "application/x-www-form-urlencoded"}),
    ],
)
def test_a_sample_is_sent_as_its_form_says(tmp_path: Path, form: str, body: bytes, headers: dict[str, str]) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe")
    assert request_of(Sample("", "x", form), tmp_path) == (body, headers)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("ModuleNotFoundError: No module named 'transformers.x'", "the library `transformers.x` is not installed here"),
        ("RuntimeError: Found no NVIDIA driver", "a GPU is needed"),
        ("AttributeError: x", ""),
    ],
)
def test_only_what_this_machine_lacks_is_not_judged(message: str, reason: str) -> None:
    assert unjudged(message) == reason


def test_weights_of_an_unknown_network_are_not_made(tmp_path: Path) -> None:
    assert "`bert.bin`" in make(tmp_path / "bert.bin", None, tmp_path)
