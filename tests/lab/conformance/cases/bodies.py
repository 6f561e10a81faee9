"""A request's body and headers as seen by a handler."""

from tests.lab.conformance.case import Case, Group, Step, ask, case

SHOWS = "/predictions/shows"
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=frontier"
TEXT_FILE = 'form-data; name="data"; filename="a.txt"'


def shows(name: str, body: bytes | str = b"", kind: str = "", **headers: str) -> Case:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return case(name, ask(SHOWS, body, kind=kind, headers=named), uses="shows")


def parts(*parts: tuple[str, str, bytes]) -> bytes:
    """Encode parts: disposition, content type (or empty), value."""
    encoded = b""
    for disposition, kind, value in parts:
        type_line = f"Content-Type: {kind}\r\n" if kind else ""
        encoded += f"--frontier\r\nContent-Disposition: {disposition}\r\n{type_line}\r\n".encode() + value + b"\r\n"
    return encoded + b"--frontier--\r\n"


GROUP = Group(
    "bodies",
    "What a handler sees of a request",
    (
        shows("a raw body without a type is a bytearray", b"\x00\xffx"),
        shows("a raw body of another type is a bytearray", b"\x89PNG", "image/png"),
        shows("JSON is parsed", '{"a": [1, 2.5, null, true]}', "application/json"),
        shows("a JSON number is parsed", "7", "application/json"),
        shows("a JSON string is parsed", '"né"', "application/json"),
        shows("JSON with a charset is parsed", "[1]", "application/json; charset=utf-8"),
        shows("JSON's type is compared with regard to case", "[1]", "Application/JSON"),
        shows("a suffix of +json is not parsed", "[1]", "application/problem+json"),
        shows("broken JSON is a bytearray", "{", "application/json"),
        shows("empty JSON is an empty bytearray", "", "application/json"),
        shows("JSON with NaN is parsed", "[NaN]", "application/json"),
        shows("text is a string", "né", "text/plain"),
        shows("text with a charset is a string", "né", "text/plain; charset=utf-8"),
        shows("text of any kind is a string", "<p>", "text/html"),
        shows("text's type is compared with regard to case", "a", "TEXT/plain"),
        shows("a type that begins with text is text", "a", "textual"),
        shows("text that is not UTF-8 is a bytearray", b"\xff", "text/plain"),
        shows("empty text is an empty string", "", "text/plain"),
        shows("an empty body is an empty bytearray"),
        case("GET runs the model too", ask(SHOWS, method="GET"), uses="shows"),
        case("PUT uploads as curl -T does", ask(SHOWS, b"file", "PUT"), uses="shows"),
        case("DELETE runs the model too", ask(SHOWS, method="DELETE"), uses="shows"),
        shows("form fields are bytearrays", "a=1&b=%20x+y", FORM),
        shows("of a repeated form field the last counts", "a=1&a=2", FORM),
        shows("form text without an equals sign is lost", '{"a":1}', FORM),
        shows("form text is split at its first equals sign", "a=b=c", FORM),
        shows("an empty form field is an empty bytearray", "a=", FORM),
        shows("a form's escapes are decoded in names too", "%61b=%C3%A9", FORM),
        shows("an empty form has no fields", "", FORM),
        shows("a form with a charset is a form", "a=1", FORM + "; charset=utf-8"),
        shows("a form with a broken escape is refused", "a=%zz", FORM),
        shows("a form field without a name is refused", "=x", FORM),
        shows("a file part with a text type is a string", parts((TEXT_FILE, "text/plain", b"hello")), PARTS),
        shows("a file part with JSON is parsed", parts((TEXT_FILE, "application/json", b"[1]")), PARTS),
        shows("a file part's charset is left out", parts((TEXT_FILE, "text/plain; charset=UTF-8", b"a")), PARTS),
        shows("a file part of bytes is a bytearray", parts((TEXT_FILE, "application/octet-stream", b"\0")), PARTS),
        shows("a file part without a type is a bytearray", parts((TEXT_FILE, "", b"hello")), PARTS),
        shows("a plain part is a bytearray", parts(('form-data; name="k"', "", b"v")), PARTS),
        shows("a plain part with a type is a bytearray", parts(('form-data; name="k"', "text/plain", b"v")), PARTS),
        shows("an empty plain part is an empty bytearray", parts(('form-data; name="k"', "", b"")), PARTS),
        shows(
            "several parts are several values",
            parts((TEXT_FILE, "", b"file"), ('form-data; name="k"', "", b"v")),
            PARTS,
        ),
        shows(
            "of parts with one name the last counts",
            parts(('form-data; name="k"', "", b"1"), ('form-data; name="k"', "", b"2")),
            PARTS,
        ),
        shows("multipart without a boundary is a raw body", "x", "multipart/form-data"),
        shows("the handler sees the client's headers as they were sent", "", X_Mine="yes", x_LOWER="no"),
        shows("of a repeated header the handler sees one", "", Accept="*/*"),
        case(
            "of a repeated header the last counts",
            Step("POST", SHOWS, (("X-Twice", "1"), ("X-Twice", "2"))),
            uses="shows",
        ),
        case("a chunked body is put together", Step(
            "POST", SHOWS, (("Transfer-Encoding", "chunked"),), b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), uses="shows"),
        case("a client that expects 100-continue gets its answer", ask(
            SHOWS, b"body", headers={"Expect": "100-continue"}), uses="shows"),
    ),
)  # fmt: skip
