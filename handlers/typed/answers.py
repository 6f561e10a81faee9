"""From a returned value to the body of an answer.

str                      text/plain; charset=utf-8
bytes                    as they are
PIL image                PNG
Audio                    WAV, 16 bits a sample
array, tensor            `.npy` if `Accept` names it, else JSON
anything else            compact JSON, arrays and tensors within it too
"""

import io
import sys
from typing import Any, get_args, get_origin

import msgspec

from tsctl.handlers.requests.rows import JSON, NPY, is_array, remedy_of, to_list, to_npy
from tsctl.handlers.sdk.errors import InvalidResult, NotSerialisable
from tsctl.handlers.typed.annotations import written
from tsctl.handlers.typed.signature import Signature

TEXT = "text/plain; charset=utf-8"
LINES = "application/x-ndjson"
_SOUNDS = "tsctl.handlers.requests.audio"  # imported where a handler has imported `Audio`
_CHECKED = (str, bytes, dict, list)  # what an annotation may promise and a value is compared with


EncodedAnswer = tuple[bytes, str]  # body, and content type: empty for bytes of an unknown type


def encode_answer(value: Any, wanted: str = "") -> EncodedAnswer:
    """Encode one answer.

    Args:
        wanted: the type of an array that the client accepts (`requests.arrays.wanted_type`).

    Raises:
        NotSerialisable: the value cannot be encoded.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace"), TEXT
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), ""
    try:
        if wanted == NPY and is_array(value):
            return to_npy(value), NPY
        if _is_image(value):
            buffer = io.BytesIO()
            value.save(buffer, "PNG")
            return buffer.getvalue(), "image/png"
        if (sounds := sys.modules.get(_SOUNDS)) is not None and isinstance(value, sounds.Audio):
            return sounds.to_wav(value), "audio/wav"
        return _encoder.encode(value), JSON
    except MemoryError:
        raise
    except Exception as error:  # of msgspec, NumPy, Pillow, or a class of the user
        raise NotSerialisable(f"{type(value).__name__}: {error}") from error


def encode_piece(value: Any) -> EncodedAnswer:
    """Encode a piece of an answer; values other than texts and bytes are lines of JSON.

    Raises:
        NotSerialisable: the value cannot be encoded.
    """
    body, content_type = encode_answer(value)
    return (body + b"\n", LINES) if content_type == JSON else (body, content_type)


def check_batch(result: Any, rows: int, signature: Signature) -> list[Any]:
    """Return the answers of a batch.

    Raises:
        InvalidResult: the result is not a list, array or tensor with one item for each row.
    """
    expected = f"expected a list of {rows}, one answer for each row of the batch"
    if not isinstance(result, (list, tuple)) and not (is_array(result) and result.ndim):
        raise InvalidResult(f"`{signature.function}` returned {_named(result)}; {expected}")
    if len(result) != rows:
        answers = f"{len(result)} answer{'' if len(result) == 1 else 's'}"
        raise InvalidResult(f"`{signature.function}` returned {answers}; {expected}")
    return list(result)


class Promise:
    """The class that a function's return annotation promises for the answer of one row, if that can be checked.

    Attributes:
        kinds: the classes that an answer may be an instance of; empty if anything will do.
    """

    def __init__(self, signature: Signature) -> None:
        promised = signature.returns
        if signature.batches:
            promised = get_args(promised)[0] if get_origin(promised) is list and get_args(promised) else Any
        kind = get_origin(promised) or promised
        self.kinds: tuple[type, ...] = ()
        if kind in _CHECKED:
            self.kinds = (bytes, bytearray) if kind is bytes else (kind,)
        self._right = (*self.kinds, BaseException)
        self._function = signature.function
        self._annotation = promised

    def check(self, value: Any) -> Any:
        """Return the answer of one row; an InvalidResult in its place if it is of another class."""
        if not self.kinds or isinstance(value, self._right):
            return value
        if list in self.kinds and is_array(value):
            return value
        expected = f"its return annotation says {written(self._annotation)}"
        return InvalidResult(f"`{self._function}` returned {_named(value)} for a row; {expected}")


def _named(value: Any) -> str:
    if value is None:
        return "None (is a `return` missing?)"
    return type(value).__name__


def _is_image(value: Any) -> bool:
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(value, pillow.Image)


def _plain(value: Any) -> Any:
    """Return a value that msgspec can encode, for one that it cannot."""
    if is_array(value):
        return to_list(value)
    if callable(getattr(value, "model_dump", None)):  # pydantic
        return value.model_dump(mode="json")
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        plain = value.item()
        if not isinstance(plain, type(value)):  # longdouble has none
            return plain
    raise TypeError(f"objects of type {type(value).__name__} cannot be encoded as JSON{remedy_of(value)}")


_encoder = msgspec.json.Encoder(enc_hook=_plain)
