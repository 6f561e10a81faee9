"""Python values as request bodies.

    str                       text/plain                bytes                as they are, without a type
    dict, list, number        application/json          pathlib.Path         the file, its type by its name
    numpy array, tensor       application/x-npy         Pillow image         image/png
    tsctl.Audio               audio/wav
    several named values      multipart/form-data, a part for each

numpy, torch and Pillow are not imported here: who passes such a value has imported them.
"""

import io
import json
import secrets
import sys
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

NPY = "application/x-npy"
_PNG_MODES = frozenset({"1", "L", "LA", "I", "I;16", "P", "RGB", "RGBA"})
_ENDINGS = {"text/plain": ".txt", "application/json": ".json", "image/png": ".png", "audio/wav": ".wav", NPY: ".npy"}


class EncodedInput(NamedTuple):
    """A body; `content_type` is empty if it has none."""

    content: bytes
    content_type: str = ""


def encode(value: Any, content_type: str | None = None) -> EncodedInput:
    """Return a value as a body; `content_type` replaces the one of the table above.

    Raises:
        TypeError: the value is of no type that can be sent.
        ValueError: the value holds what its format cannot, such as NaN in JSON, or objects in an array.
        OSError: the file cannot be read.
    """
    body = _encode(value)
    return body if content_type is None else EncodedInput(body.content, content_type)


def encode_parts(parts: Mapping[str, Any]) -> EncodedInput:
    """Return named values as a form, a part for each.

    Raises:
        TypeError: a value is of no type that can be sent.
        ValueError: there is no part, or one cannot be sent.
        OSError: a file cannot be read.
    """
    if not parts:
        raise ValueError("`parts` is empty; a form has at least one part")
    boundary = secrets.token_hex(16)
    pieces: list[bytes] = []
    for name, value in parts.items():
        body = encode(value)
        kind = body.content_type or "application/octet-stream"
        # A part without a file name has no type for the daemon, and would not be decoded.
        file = value.name if isinstance(value, PurePath) else name + _ENDINGS.get(kind.partition(";")[0], "")
        head = f'form-data; name="{_quoted(name)}"; filename="{_quoted(file)}"'
        pieces.append(f"--{boundary}\r\nContent-Disposition: {head}\r\nContent-Type: {kind}\r\n\r\n".encode())
        pieces += (body.content, b"\r\n")
    pieces.append(f"--{boundary}--\r\n".encode())
    return EncodedInput(b"".join(pieces), f"multipart/form-data; boundary={boundary}")


def _quoted(text: str) -> str:
    """Escape a name as browsers do (WHATWG HTML, multipart/form-data)."""
    if not text:
        raise ValueError("a part of the form has an empty name")
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A").replace("\\", "%5C")


def _encode(value: Any) -> EncodedInput:
    if value is None:
        return EncodedInput(b"")
    if isinstance(value, str):
        return EncodedInput(value.encode(), "text/plain; charset=utf-8")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return EncodedInput(bytes(value))
    if isinstance(value, PurePath):
        return _file(value)
    if isinstance(value, (dict, list, tuple, bool, int, float)):
        return _json(value)
    return _foreign(value)


def _file(path: PurePath) -> EncodedInput:
    import mimetypes

    kind = NPY if path.suffix == ".npy" else mimetypes.guess_type(path.name)[0] or ""
    with open(path, "rb") as file:
        return EncodedInput(file.read(), kind)


def _json(value: Any) -> EncodedInput:
    try:
        return EncodedInput(json.dumps(value, ensure_ascii=False, allow_nan=False).encode(), "application/json")
    except TypeError as error:
        raise TypeError(f"the value cannot be sent as JSON: {error}") from None
    except ValueError as error:
        raise ValueError(f"the value cannot be sent as JSON: {error}") from None


def _foreign(value: Any) -> EncodedInput:
    torch, numpy, images = (sys.modules.get(name) for name in ("torch", "numpy", "PIL.Image"))
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
        numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        stream = io.BytesIO()
        numpy.save(stream, value, allow_pickle=False)
        return EncodedInput(stream.getvalue(), NPY)
    if numpy is not None and isinstance(value, numpy.generic):
        return _json(value.item())
    if images is not None and isinstance(value, images.Image):
        stream = io.BytesIO()
        (value if value.mode in _PNG_MODES else value.convert("RGB")).save(stream, "PNG")
        return EncodedInput(stream.getvalue(), "image/png")
    sounds = sys.modules.get("tsctl.handlers.requests.audio")
    if sounds is not None and isinstance(value, sounds.Audio):
        return EncodedInput(sounds.to_wav(value), "audio/wav")
    raise TypeError(
        f"a value of type {type(value).__name__} cannot be sent: pass str, bytes, dict, list, number, pathlib.Path,"
        " a numpy array, a tensor, a Pillow image or tsctl.Audio"
    )
