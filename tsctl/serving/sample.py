"""The `curl` line of a model that was just served: a request that works as it stands.

The body follows from what the handler declares, else from a sample file beside it, else from the built-in handler.
"""

import ast
import json
import math
import pickletools
import shlex
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tsctl.daemon.marfile import open_zip
from tsctl.daemon.targets import DIRECTORY_OF_TORCH, ServeTarget

_LARGEST = 16 * 1024 * 1024  # bytes of a pickle; the tensors are beside it
_INTS = ("BININT", "BININT1", "BININT2", "LONG1")


class StoredTensor(NamedTuple):
    """A tensor in a pickle: the class of the module that holds it, and its size."""

    owner: str
    size: tuple[int, ...]


class RowShape(NamedTuple):
    """The shape of one row.

    Attributes:
        certain: whether the model takes this shape; else it is guessed from a parameter.
        indices: whether the values are indices.
    """

    size: tuple[int, ...]
    certain: bool
    indices: bool = False


def row_shape(file: Path) -> RowShape | None:
    """The shape of a row that a TorchScript file takes, read from its pickles without running them.

    A traced model keeps the sizes of the inputs that it was traced with. Of a scripted one the first parameter tells: a
    Linear layer's last dimension is the length of a row. The first dimension of an input counts the rows of a batch.
    """
    try:
        with open_zip(file, DIRECTORY_OF_TORCH) as archive:
            traced = _first(_read(archive, "traced_inputs.pkl"))
            if traced is not None and len(traced.size) > 1:
                return RowShape(traced.size[1:], certain=True)
            first = _first(_read(archive, "data.pkl"))
    except (OSError, zipfile.BadZipFile, ValueError, KeyError):
        return None
    if first is None:
        return None
    if first.owner.endswith(" Linear") and len(first.size) == 2:
        return RowShape(first.size[1:], certain=True)
    if first.owner.endswith(" Embedding") and len(first.size) == 2:
        return RowShape((3,), certain=False, indices=True)
    if first.owner.endswith(" Conv2d") and len(first.size) == 4:
        return RowShape((first.size[1], 224, 224), certain=False)
    return None


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a member by the end of its name; empty if there is none, or if it is too large."""
    found = [info for info in archive.infolist() if info.filename.endswith(f"/{name}") and info.file_size <= _LARGEST]
    return archive.read(found[0]) if found else b""


def _first(content: bytes) -> StoredTensor | None:
    return next(_tensors(content), None) if content else None


def _tensors(content: bytes) -> Iterator[StoredTensor]:
    """Yield the tensors of a pickle: after a storage (BINPERSID) come its offset, then the size as a tuple.

    Raises:
        ValueError: the content is no pickle.
    """
    owner = ""
    numbers: list[int] | None = None
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name == "GLOBAL" and str(argument).startswith("__torch__"):
            owner = str(argument)
        elif opcode.name == "BINPERSID":
            numbers = []
        elif numbers is not None and opcode.name in _INTS:
            numbers.append(int(str(argument)))
        elif numbers is not None and opcode.name in ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_TUPLE"):
            yield StoredTensor(owner, tuple(numbers[1:]))
            numbers = None


WIDTH = 79  # characters of a line that a terminal of 80 columns does not wrap
TEXT, NUMBERS = "hello", [1.0, 2.0, 3.0]
_IMAGE_HANDLERS = ("vision_handler", "image_classifier", "object_detector", "image_segmenter")
_TEXT_HANDLERS = ("text_handler", "text_classifier")
_STEMS = ("sample", "example", "input", "request", "test")  # of a sample file beside a target
_TYPES = {
    ".json": "application/json", ".txt": "text/plain", ".jpg": "image/jpeg", ".jpeg": "image/jpeg",
    ".png": "image/png", ".webp": "image/webp", ".wav": "audio/wav", ".flac": "audio/flac", ".ogg": "audio/ogg",
    ".npy": "application/octet-stream",
}  # fmt: skip
_PREFIXES = {"text": "text/", "image": "image/", "audio": "audio/", "json": "application/json"}  # kind → content type
_SCALARS: dict[str, Any] = {
    "str": TEXT, "int": 1, "float": 1.5, "bool": True, "bytes": TEXT, "dict": {}, "list": [], "tuple": [], "set": [],
    "Any": TEXT, "object": TEXT, "None": None,
}  # fmt: skip
_LISTS = ("list", "List", "Sequence", "Iterable", "tuple", "Tuple", "set", "Set", "frozenset")
_DICTS = ("dict", "Dict", "Mapping")


class SamplePart(NamedTuple):
    """One part of a request: its value as text, or the file that holds it.

    Attributes:
        certain: whether the model takes such a value; else it is only well-formed.
    """

    content_type: str
    text: str = ""
    file: Path | None = None
    certain: bool = True


class Declaration(NamedTuple):
    """One declared input: `kind` as in tsctl.handlers.wire, `annotation` of one value, not of a batch."""

    name: str
    kind: str
    annotation: str


def declared_inputs(document: Mapping[str, Any] | None) -> list[Declaration]:
    """Return the inputs of a `declared` of the daemon's answers; of a batched argument the annotation of one row."""
    if not document:
        return []
    read = row_of if document["batches"] else str
    return [Declaration(each["name"], each["kind"], read(each.get("annotation", ""))) for each in document["inputs"]]


def row_of(annotation: str) -> str:
    """Return `str` for `list[str]`; an annotation that is no list stays."""
    tree = _expression(annotation)
    if isinstance(tree, ast.Subscript) and _name(tree.value) in _LISTS:
        inner = tree.slice.elts[0] if isinstance(tree.slice, ast.Tuple) else tree.slice
        return ast.unparse(inner)
    return annotation


def sample_json(annotation: str, structs: Mapping[str, Mapping[str, str]] | None = None, depth: int = 0) -> Any:
    """Return a JSON value that fits an annotation.

    Args:
        structs: classes of the handler's file: name → the fields without a default, with their annotations.
    """
    tree = _expression(annotation)
    if tree is None or depth > 5:
        return {}
    if isinstance(tree, ast.BinOp):  # X | None
        return sample_json(ast.unparse(tree.left), structs, depth)
    if isinstance(tree, ast.Subscript):
        inner = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        name = _name(tree.value)
        if name == "Literal":
            return ast.literal_eval(inner[0])
        values = [sample_json(ast.unparse(each), structs, depth + 1) for each in inner if not _is_ellipsis(each)]
        if name in _DICTS:
            return {str(values[0]): values[-1]}
        return values if name in _LISTS else values[0]  # Optional, Annotated
    name = _name(tree)
    if structs and name in structs:
        return {field: sample_json(kind, structs, depth + 1) for field, kind in structs[name].items()}
    return _SCALARS.get(name, {})


def structs_of(source: str) -> dict[str, dict[str, str]]:
    """Return the annotated classes of a Python file: name → field without a default → annotation."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[str, dict[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            inherited = [found.get(_name(base), {}) for base in node.bases]
            own = {
                line.target.id: ast.unparse(line.annotation)
                for line in node.body
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is None
            }
            found[node.name] = {**{key: value for each in inherited for key, value in each.items()}, **own}
    return found


def declared_part(
    declared: Declaration, structs: Mapping[str, Mapping[str, str]], image: Path, beside: Path | None = None
) -> SamplePart:
    """Return a value for one declared input.

    Args:
        image: the picture to send where the user has none; a sound lies beside it, by the name of its ending.
        beside: a sample file of the user, sent if its type is the declared one.
    """
    if beside is not None and _TYPES[beside.suffix.lower()].startswith(_PREFIXES.get(declared.kind, "no ")):
        return SamplePart(_TYPES[beside.suffix.lower()], file=beside)
    match declared.kind:
        case "text":
            return SamplePart("text/plain", TEXT)
        case "image":
            return SamplePart("image/png", file=image)
        case "audio":
            return SamplePart("audio/wav", file=image.with_suffix(".wav"))
        case "bytes":
            return SamplePart("application/octet-stream", TEXT)
        case "json":
            return SamplePart("application/json", json.dumps(sample_json(declared.annotation, structs)))
        case _:  # array, tensor
            return SamplePart("application/json", json.dumps(NUMBERS), certain=False)


def tensors_part(inputs: Sequence[Mapping[str, Any]]) -> SamplePart:
    """Return a JSON object with the inputs that a model's file tells; of a file that tells no shapes, a guess."""
    values = {}
    for each in inputs:
        row: Any = {"BOOL": False}.get(each["datatype"], 1)
        for length in reversed(each["shape"] or ()):
            row = [row] * max(1, length)
        values[each["name"]] = NUMBERS if each["shape"] is None else row
    return SamplePart("application/json", json.dumps(values), certain=all(each["shape"] is not None for each in inputs))


def undeclared_part(target: ServeTarget, warmup: SamplePart | None, image: Path) -> SamplePart:
    """Return a body for a handler that declares nothing.

    Args:
        warmup: the sample that model-config.yaml names.
    """
    if warmup is not None:
        return warmup
    beside = sample_beside(target)
    if beside is not None:
        return SamplePart(_TYPES[beside.suffix.lower()], file=beside)
    if target.handler in _IMAGE_HANDLERS:
        return SamplePart("image/png", file=image)
    if target.handler in _TEXT_HANDLERS:
        return SamplePart("text/plain", TEXT)
    if target.kind == "model":
        shape = row_shape(target.path) if target.path is not None else None
        if shape is None:
            return SamplePart("application/json", json.dumps(NUMBERS), certain=False)
        return SamplePart("application/json", json.dumps(_filled(shape)), certain=shape.certain)
    return SamplePart("text/plain", TEXT, certain=False)


def _filled(shape: RowShape) -> Any:
    """Return nested lists of this shape."""
    row: Any = 1 if shape.indices else 0.5
    for length in reversed(shape.size):
        row = [row] * length
    return row


def sample_beside(target: ServeTarget) -> Path | None:
    """Return a file beside a target that is named as a sample of a request, `sample.json` say."""
    if target.path is None or not target.inferred:
        return None
    folder = target.path if target.path.is_dir() else target.path.parent
    stems = (target.path.stem, *_STEMS)  # `digits.png` beside `digits.py`
    files = (folder / f"{stem}{suffix}" for stem in stems for suffix in _TYPES)
    return next((file for file in files if file.is_file()), None)


def curl_line(url: str, parts: Sequence[tuple[str, SamplePart]], *, socket: str = "", token: str = "") -> str:
    """Return the command for a POSIX shell: one line of at most `WIDTH` characters if that suffices, else two.

    Args:
        url: of the predictions.
        parts: name and value; one part alone is the body.
        socket: the control socket, where the daemon has no TCP address.
        token: the name of the variable that holds the token of the inference API.
    """
    words = [*(["--unix-socket", shlex.quote(socket)] if socket else []), shlex.quote(url.removeprefix("http://"))]
    if token:
        words += ["-H", f'"Authorization: Bearer ${token}"']
    request = []
    if len(parts) == 1:
        part = parts[0][1]
        body = f"@{part.file}" if part.file is not None else part.text
        flag = "--data-binary" if part.file is not None else "-d"
        request = ["-H", shlex.quote(f"content-type:{part.content_type}"), flag, shlex.quote(body)]
    for name, part in parts if len(parts) > 1 else ():
        value = f"@{part.file}" if part.file is not None else _quoted(part.text)
        request += ["-F", shlex.quote(f"{name}={value};type={part.content_type}")]
    line = " ".join(["curl", *words, *request])
    return line if len(line) <= WIDTH else " ".join(["curl", *words, "\\\n   ", *request])


def png(side: int = 64) -> bytes:
    """Return a small picture, a gradient of grey, as a PNG file."""
    rows = b"".join(b"\0" + bytes((4 * (x + y)) % 256 for x in range(side)) for y in range(side))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)  # 8 bits of grey
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def wav(seconds: float = 0.5, rate: int = 16000, pitch: float = 440.0) -> bytes:
    """Return a short tone as a WAV file: one channel of 16 bits."""
    count = round(seconds * rate)
    values = (round(8192 * math.sin(2 * math.pi * pitch * at / rate)) for at in range(count))
    data = struct.pack(f"<{count}h", *values)
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
    chunks = b"WAVE" + form + struct.pack("<4sI", b"data", len(data)) + data
    return struct.pack("<4sI", b"RIFF", len(chunks)) + chunks


def _quoted(text: str) -> str:
    """Quote a value for `-F`, which curl would end at `;` and read from a file after `@`."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _expression(annotation: str) -> ast.expr | None:
    try:
        return ast.parse(annotation.strip("'\""), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis
