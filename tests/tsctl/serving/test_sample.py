"""The `curl` line that a served model is shown with: its body fits what the model takes, and it can be pasted."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.kit.archives import write_files
from tsctl.daemon.targets import read_target
from tsctl.handlers.requests.audio import decode_audio
from tsctl.serving import sample
from tsctl.serving.sample import Declaration, SamplePart, curl_line, declared_inputs, sample_json

URL = "http://127.0.0.1:8080/predictions/m"
IMAGE = Path("/s/sample.png")


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("int", 1), ("float", 1.5), ("str", "hello"), ("bool", True), ("list[int]", [1]),
        ("dict[str, float]", {"hello": 1.5}),
        ("Literal['a', 'b']", "a"), ("int | None", 1), ("Optional[int]", 1), ("tuple[int, ...]", [1]), ("Any", "hello"),
        ("'Query'", {"text": "hello", "limit": 1}), ("list[Query]", [{"text": "hello", "limit": 1}]), ("Unknown", {}),
        ("", {}), ("not valid (", {}), ("np.ndarray", {}),
    ],
)  # fmt: skip
def test_a_value_of_an_annotation(annotation: str, value: Any) -> None:
    classes = {"Query": {"text": "str", "limit": "int"}, "Node": {"next": "Node"}}

    assert sample_json(annotation, classes) == value
    assert isinstance(sample_json("Node", classes), dict), "it ends"


def test_the_fields_of_a_class_are_those_without_a_default() -> None:
    source = "class Base:\n    id: int\nclass Query(Base):\n    text: str\n    limit: int = 3\ndef f(): ...\n"

    assert sample.structs_of(source) == {"Base": {"id": "int"}, "Query": {"id": "int", "text": "str"}}
    assert sample.structs_of("class (") == {}


@pytest.mark.parametrize(
    ("batches", "annotation", "expected"),
    [(True, "list[str]", "str"), (True, "Sequence[Query]", "Query"), (False, "list[str]", "list[str]")],
)
def test_of_a_batched_argument_one_row_is_sent(batches: bool, annotation: str, expected: str) -> None:
    document = {"batches": batches, "inputs": [{"name": "texts", "kind": "text", "annotation": annotation}]}

    assert declared_inputs(document) == [Declaration("texts", "text", expected)]
    assert declared_inputs(None) == []


@pytest.mark.parametrize(
    ("kind", "annotation", "content_type", "text"),
    [
        ("text", "str", "text/plain", "hello"),
        ("json", "Query", "application/json", '{"text": "hello"}'),
        ("bytes", "bytes", "application/octet-stream", "hello"),
        ("array", "np.ndarray", "application/json", "[1.0, 2.0, 3.0]"),
    ],
)
def test_a_declared_input_gets_a_body_of_its_type(kind: str, annotation: str, content_type: str, text: str) -> None:
    part = sample.declared_part(Declaration("x", kind, annotation), {"Query": {"text": "str"}}, IMAGE)

    assert (part.content_type, part.text) == (content_type, text)


@pytest.mark.parametrize(
    ("inputs", "document", "certain"),
    [
        pytest.param(
            [("ids", "INT64", [2]), ("scale", "FP32", [])], {"ids": [1, 1], "scale": 1}, True, id="types and shapes"
        ),
        pytest.param([("mask", "BOOL", [-1, 2])], {"mask": [[False, False]]}, True, id="any length"),
        pytest.param([("a", None, None), ("b", None, None)], {key: [1.0, 2.0, 3.0] for key in "ab"}, False, id="names"),
    ],
)
def test_the_inputs_that_a_models_file_tells_are_members_of_an_object(
    inputs: list[tuple[str, str | None, list[int] | None]], document: dict[str, Any], certain: bool
) -> None:
    part = sample.tensors_part([dict(zip(("name", "datatype", "shape"), each, strict=True)) for each in inputs])

    assert (part.content_type, json.loads(part.text), part.certain) == ("application/json", document, certain)


@pytest.mark.parametrize(
    ("kind", "beside", "content_type", "file"),
    [
        ("image", None, "image/png", IMAGE),
        pytest.param("image", "cat.jpg", "image/jpeg", Path("cat.jpg"), id="a sample beside the handler"),
        pytest.param("image", "cat.json", "image/png", IMAGE, id="if its type fits"),
        pytest.param("audio", None, "audio/wav", IMAGE.with_suffix(".wav"), id="a tone beside the picture"),
    ],
)
def test_a_declared_file(kind: str, beside: str | None, content_type: str, file: Path) -> None:
    part = sample.declared_part(Declaration("x", kind, ""), {}, IMAGE, Path(beside) if beside else None)

    assert (part.content_type, part.file) == (content_type, file)


def test_the_tone_is_one() -> None:
    sound = decode_audio(sample.wav())

    assert (sound.channels.shape, sound.rate) == ((1, 8000), 16000)
    assert 0.2 < abs(sound.samples).max() < 0.3


@pytest.mark.parametrize(
    ("target", "files", "content_type"),
    [
        pytest.param("h.py", {"h.py": b"", "sample.json": b"[]"}, "application/json", id="a sample beside it"),
        pytest.param("digits.py", {"digits.py": b"", "digits.png": b""}, "image/png", id="a sample of its name"),
        pytest.param("m.onnx", {"m.onnx": b"x"}, "application/json", id="a model"),
        pytest.param("h.py", {"h.py": b""}, "text/plain", id="a handler"),
    ],
)
def test_an_undeclared_handler_gets_the_likeliest_body(
    target: str, files: dict[str, bytes], content_type: str, tmp_path: Path
) -> None:
    part = sample.undeclared_part(read_target(target, write_files(tmp_path, files)), None, IMAGE)

    assert part.content_type == content_type
    assert part.certain is (part.file is not None)


def test_the_sample_of_the_configuration_comes_first(tmp_path: Path) -> None:
    target = read_target("h.py", write_files(tmp_path, {"h.py": b"", "sample.json": b"[]"}))
    warmup = SamplePart("image/jpeg", file=Path("/w/flower.jpg"))

    assert sample.undeclared_part(target, warmup, IMAGE) is warmup


HELLO = SamplePart("text/plain", "hello")


@pytest.mark.parametrize(
    ("parts", "more", "line"),
    [
        ([("data", HELLO)], {}, "curl 127.0.0.1:8080/predictions/m -H content-type:text/plain -d hello"),
        pytest.param(
            [("text", SamplePart("text/plain", 'a;b "c" \\')), ("image", SamplePart("image/png", file=IMAGE))], {},
            """curl 127.0.0.1:8080/predictions/m -F 'text="a;b \\"c\\" \\\\";type=text/plain' """
            "-F 'image=@/s/sample.png;type=image/png'", id="several inputs are the parts of a form"),
        pytest.param(
            [("x", HELLO)], {"socket": "/run/my s.sock"},
            "curl --unix-socket '/run/my s.sock' 127.0.0.1:8080/predictions/m -H content-type:text/plain -d hello",
            id="a daemon without TCP is asked through its socket"),
        pytest.param(
            [("x", HELLO)], {"token": "TSCTL_TOKEN"},
            "curl 127.0.0.1:8080/predictions/m -H 'Authorization: Bearer $TSCTL_TOKEN' -H content-type:text/plain "
            "-d hello",
            id="a token is taken from its variable, and not shown"),
    ],
)  # fmt: skip
def test_a_line(parts: list[tuple[str, SamplePart]], more: dict[str, str], line: str) -> None:
    found = curl_line(URL, parts, **more)

    assert shlex.split(found.replace("\\\n", "")) == shlex.split(line)
    assert max(map(len, found.splitlines())) < 120 and ("\n" in found) == (len(line) > 79)
    assert "token" not in more or '"Authorization: Bearer $TSCTL_TOKEN"' in found, "as a shell replaces it"


def test_a_longer_line_is_two_that_a_shell_takes_for_one() -> None:
    line = curl_line(URL, [("data", SamplePart("application/json", json.dumps({"text": "it's " * 10})))])

    assert line.splitlines()[0] == "curl 127.0.0.1:8080/predictions/m \\"
    assert json.loads(shlex.split(line.replace("\\\n", ""))[-1]) == {"text": "it's " * 10}


def test_the_picture_is_one(tmp_path: Path) -> None:
    from PIL import Image

    (tmp_path / "p.png").write_bytes(sample.png())

    with Image.open(tmp_path / "p.png") as image:
        image.load()
        assert (image.size, image.mode) == ((64, 64), "L")
