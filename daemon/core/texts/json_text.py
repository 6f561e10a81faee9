"""JSON with texts of clients, archives and handlers: read without lone surrogates, and written whatever is in a text.

UTF-8 cannot encode a lone surrogate, which JSON's `"\\ud83c"` and names of files may have.
"""

import json
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def parse_json(data: bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: the bytes are not JSON, are nested too deeply, or have a text with a lone surrogate.
    """
    try:
        document = json.loads(data)
        json.dumps(document, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("a text has half of a surrogate pair") from None
    return document


def json_bytes(document: Any) -> bytes:
    """Encode a document, with `?` for each lone surrogate in its texts."""
    try:
        return _encode(document)
    except UnicodeEncodeError:
        return _encode(_whole(msgspec.to_builtins(document)))


def whole_text(text: str) -> str:
    """Return a text with `?` for each lone surrogate."""
    return text.encode("utf-8", "replace").decode()


def _whole(value: Any) -> Any:
    """Return a value of built-in types without lone surrogates."""
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict):
        return {_whole(key): _whole(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(each) for each in value]
    return value
