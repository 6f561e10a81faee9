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
    assert sample_json(annotation, {"Query": {"text": "str", "limit": "int"}}) == value


def test_a_class_that_names_itself_ends() -> None:
    assert isinstance(sample_json("Node", {"Node": {"next": "Node"}}), dict)


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


def test_an_undeclared_handler_declares_nothing() -> None:
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


def test_a_declared_sound_gets_a_tone_beside_the_picture() -> None:
    part = sample.declared_part(Declaration("x", "audio", "Audio"), {}, IMAGE)

    assert (part.content_type, part.file) == ("audio/wav", IMAGE.with_suffix(".wav"))
    sound = decode_audio(sample.wav())
    assert (sound.channels.shape, sound.rate) == ((1, 8000), 16000)
    assert 0.2 < abs(sound.samples).max() < 0.3


def test_a_declared_image_gets_a_picture() -> None:
    part = sample.declared_part(Declaration("x", "image", "Image"), {}, IMAGE)

    assert (part.content_type, part.file) == ("image/png", IMAGE)


@pytest.mark.parametrize(("beside", "sent"), [("cat.jpg", True), ("cat.json", False)])
def test_a_sample_beside_the_handler_is_sent_if_its_type_fits(beside: str, sent: bool) -> None:
    part = sample.declared_part(Declaration("x", "image", "Image"), {}, IMAGE, Path(beside))

    assert (part.file == Path(beside)) is sent


@pytest.mark.parametrize(
    ("target", "files", "content_type"),
    [
        pytest.param("h.py", {"h.py": b"", "sample.json": b"[]"}, "application/json", id="a sample beside it"),
        pytest.param("digits.py", {"digits.py": b"", "digits.png": b""}, "image/png", id="a sample of its name"),
        pytest.param("m.onnx", {"m.onnx": b""}, "application/json", id="a model"),
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


def words_of(line: str) -> list[str]:
    """Return the words of a command as a shell reads it, which joins lines at a backslash."""
    return shlex.split(line.replace("\\\n", ""))


def test_a_line_fits_a_terminal_of_80_columns() -> None:
    line = curl_line("http://127.0.0.1:8080/predictions/sentiment", [("data", SamplePart("text/plain", "hello"))])

    assert line == "curl 127.0.0.1:8080/predictions/sentiment -H content-type:text/plain -d hello"
    assert len(line) < 80


def test_a_longer_line_is_two_that_a_shell_takes_for_one() -> None:
    line = curl_line(URL, [("data", SamplePart("application/json", json.dumps({"text": "it's " * 10})))])

    assert line.splitlines()[0] == "curl 127.0.0.1:8080/predictions/m \\"
    words = words_of(line)
    assert words[:2] == ["curl", "127.0.0.1:8080/predictions/m"]
    assert json.loads(words[-1]) == {"text": "it's " * 10}


def test_several_inputs_are_the_parts_of_a_form() -> None:
    parts = [("text", SamplePart("text/plain", 'a;b "c" \\')), ("image", SamplePart("image/png", file=IMAGE))]

    words = words_of(curl_line(URL, parts))

    assert words[2:] == ["-F", 'text="a;b \\"c\\" \\\\";type=text/plain', "-F", "image=@/s/sample.png;type=image/png"]


def test_a_daemon_without_tcp_is_asked_through_its_socket() -> None:
    line = curl_line(
        "http://localhost/predictions/m", [("x", SamplePart("text/plain", "hello"))], socket="/run/my s.sock"
    )

    assert shlex.split(line)[:4] == ["curl", "--unix-socket", "/run/my s.sock", "localhost/predictions/m"]


def test_a_token_is_taken_from_its_variable_and_not_shown() -> None:
    line = curl_line(URL, [("x", SamplePart("text/plain", "hello"))], token="TSCTL_INFERENCE_TOKEN")

    assert '-H "Authorization: Bearer $TSCTL_INFERENCE_TOKEN"' in line


def test_the_picture_is_one(tmp_path: Path) -> None:
    from PIL import Image

    (tmp_path / "p.png").write_bytes(sample.png())

    with Image.open(tmp_path / "p.png") as image:
        image.load()
        assert (image.size, image.mode) == ((64, 64), "L")
