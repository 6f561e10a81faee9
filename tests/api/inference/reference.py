"""Reference parsers of forms, python-multipart and urllib, for comparison with ours."""

from urllib.parse import unquote_to_bytes

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser

from tsctl.daemon.api.inference.multipart import MOST_HEADER_BYTES, MOST_HEADERS

_DIGITS = frozenset(b"0123456789abcdefABCDEF")


def parts_of(boundary: bytes, body: bytes) -> list[bytes] | None:
    """Return the data of each part, as python-multipart reads it; None if it is broken or cut short."""
    parts: list[bytes] = []
    data, ended = bytearray(), []

    def end_part() -> None:
        parts.append(bytes(data))
        data.clear()

    parser = MultipartParser(
        boundary,
        {
            "on_part_data": lambda text, start, end: data.extend(text[start:end]),
            "on_part_end": end_part,
            "on_end": lambda: ended.append(True),
        },
        max_header_count=MOST_HEADERS,  # its own bounds are narrower than ours
        max_header_size=MOST_HEADER_BYTES,
    )
    try:
        parser.write(body)
    except FormParserError:
        return None
    return parts if ended else None


def unescaped(text: bytes) -> bytes | None:
    """Return what `%XX` and `+` stand for, as urllib reads them; None where an escape is broken."""
    rests = text.split(b"%")[1:]
    if not all(len(rest) >= 2 and rest[0] in _DIGITS and rest[1] in _DIGITS for rest in rests):
        return None
    return unquote_to_bytes(text.replace(b"+", b" "))
