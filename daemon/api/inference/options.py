"""Parser of a header's value and its options: `form-data; name="k"; filename="x.png"`.

The rules are those of python-multipart, which tests/api/inference/test_options.py compares with: a quote after a
backslash does not end a value, names are case-insensitive, the last of repeated names wins, and names with `*` (RFC
5987) are ignored: RFC 7578, section 4.2, forbids them in forms. But for `filename*`, which clients send all the same: a
part with it is a file.
"""

from tsctl.daemon.core.errors import BadRequest

MOST_OPTIONS = 100


def parse_options(value: str) -> tuple[str, dict[str, str]]:
    """Return a header's value in lower case, and its options by name; time in proportion to the value's length.

    Raises:
        BadRequest: the header has more than `MOST_OPTIONS` options.
    """
    if ";" not in value:
        return value.lower().strip(" \t"), {}
    pieces = value.split(";", MOST_OPTIONS + 1)
    if len(pieces) > MOST_OPTIONS + 1:
        raise BadRequest(
            f"The header `{value[:50]}` is broken: it has more than {MOST_OPTIONS} semicolons. Send fewer options."
        )
    kind = ""
    options: dict[str, str] = {}
    segment = ""
    quoted = False  # the previous piece left a quote open: the semicolon is part of a value
    first = True
    for piece in pieces:
        segment = f"{segment};{piece}" if quoted else piece
        if '"' in piece and (piece.count('"') - piece.count('\\"')) % 2:
            quoted = not quoted
        if quoted:
            continue
        if first:
            first, kind = False, _tidy(segment).lower()
        else:
            _add(options, segment)
    if quoted:  # an unclosed quote: the rest is its value
        if first:
            kind = _tidy(segment).lower()
        else:
            _add(options, segment)
    return kind, options


def _tidy(segment: str) -> str:
    name, equals, value = segment.partition("=")
    return (name.rstrip(" \t").lower() + "=" + value.lstrip(" \t") if equals else name).strip(" \t")


def _add(options: dict[str, str], segment: str) -> None:
    name, _, value = _tidy(segment).partition("=")
    if "*" in name and name != "filename*":
        return
    if len(value) >= 2 and value[0] == '"' and value[len(value) - 1] == '"':
        value = value[1 : len(value) - 1].replace("\\\\", "\\").replace('\\"', '"')
    options[name] = value
