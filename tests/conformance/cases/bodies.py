"""What a handler sees of a request's body and headers."""

from tests.conformance.case import Group, ask, case

SHOWS = "/predictions/shows"
FORM = "application/x-www-form-urlencoded"

GROUP = Group(
    "bodies",
    "What a handler sees of a request",
    (
        case("a raw body without a type is a bytearray", ask(SHOWS, b"\x00\xffx"), uses="shows"),
        case("JSON is parsed", ask(SHOWS, '{"a": [1, 2.5, null, true]}', kind="application/json"), uses="shows"),
        case("JSON with a charset is parsed", ask(SHOWS, "[1]", kind="application/json; charset=utf-8"), uses="shows"),
        case("broken JSON is a bytearray", ask(SHOWS, "{", kind="application/json"), uses="shows"),
        case("empty JSON is an empty bytearray", ask(SHOWS, "", kind="application/json"), uses="shows"),
        case("text is a string", ask(SHOWS, "né", kind="text/plain"), uses="shows"),
        case("text that is not UTF-8 is a bytearray", ask(SHOWS, b"\xff", kind="text/plain"), uses="shows"),
        case("an empty body is an empty bytearray", ask(SHOWS), uses="shows"),
        case("form fields are bytearrays", ask(SHOWS, "a=1&b=%20x+y", kind=FORM), uses="shows"),
        case("of a repeated form field the last counts", ask(SHOWS, "a=1&a=2", kind=FORM), uses="shows"),
    ),
)
