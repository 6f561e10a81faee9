"""Paths, methods, and HTTP itself."""

from tests.lab.conformance.case import Case, Group, Step, ask, case, manage

ENTRY = "/predictions/entry"


def raw(name: str, data: bytes) -> Case:
    return case(name, Step("", "", raw=data), uses="entry")


def at(name: str, target: str, method: str = "POST") -> Case:
    return case(name, ask(target, method=method), uses="entry")


GROUP = Group(
    "routes",
    "Routes and HTTP",
    (
        at("a prediction", ENTRY),
        at("a prediction of a version", ENTRY + "/1.0"),
        at("a slash at the end", ENTRY + "/"),
        at("a query is not looked at", ENTRY + "?a=1"),
        at("an escaped name", "/predictions/%65ntry"),
        case("what follows the version is url_path", ask("/predictions/shows/1.0/a/b%20c"), uses="shows"),
        at("predictions without a model", "/predictions"),
        at("predictions without a model, with a slash", "/predictions/"),
        at("an unknown route", "/nowhere"),
        at("an unknown route of several segments", "/a/b/c", "GET"),
        at("the root", "/", "GET"),
        at("the root by POST", "/"),
        at("ping", "/ping", "GET"),
        at("ping by POST", "/ping"),
        at("ping with a further segment", "/ping/x", "GET"),
        at("the management API is not on the inference address", "/models", "GET"),
        at("describing is not on the inference address", "/models/entry", "GET"),
        at("an OPTIONS request to a model", ENTRY, "OPTIONS"),
        at("an OPTIONS request to the root", "/", "OPTIONS"),
        at("the API description", "/api-description", "GET"),
        at("HEAD runs the model and sends no body", ENTRY, "HEAD"),
        at("PATCH runs the model too", ENTRY, "PATCH"),
        raw("what is not HTTP", b"hello\r\n\r\n"),
        raw("an unknown version of HTTP", b"GET /ping HTTP/3.7\r\n\r\n"),
        raw("HTTP/1.0", b"GET /ping HTTP/1.0\r\n\r\n"),
        raw("HTTP/1.0 that wants to stay", b"GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
        raw("Connection: close", b"GET /ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        raw("no Host", b"GET /ping HTTP/1.1\r\n\r\n"),
        raw("an absolute target", b"GET http://a/ping HTTP/1.1\r\nHost: a\r\n\r\n"),
        raw("a lower-case method", b"get /ping HTTP/1.1\r\nHost: a\r\n\r\n"),
        raw("an invented method", b"BREW /ping HTTP/1.1\r\nHost: a\r\n\r\n"),
        raw("a negative length", b"POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"),
        raw("a length that is no number", b"POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n"),
        raw("two lengths", b"POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        raw("a length and chunks", b"POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked"
            b"\r\n\r\n0\r\n\r\n"),
        raw("a target of 5000 characters", b"GET /ping?" + b"a" * 5000 + b" HTTP/1.1\r\nHost: a\r\n\r\n"),
        raw("headers of 10 000 characters", b"GET /ping HTTP/1.1\r\nHost: a\r\nX-Long: " + b"a" * 10_000 + b"\r\n\r\n"),
        raw("an expectation that is unknown", b"POST /ping HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n"),
        case("a body at the limit", Step("POST", ENTRY, body=b"x" * 1_000_000), uses="entry"),
        case("a body over the limit", Step("POST", ENTRY, body=b"x" * 1_000_001), uses="entry"),
        case("management: an unknown route", manage("GET", "/nowhere")),
        case("management: the root", manage("GET", "/")),
        case("management: an unknown method", manage("PATCH", "/models")),
        case("management: PUT without a model", manage("PUT", "/models")),
        case("management: DELETE without a model", manage("DELETE", "/models")),
        case("management: POST to a model", manage("POST", "/models/entry"), uses="entry"),
        case("management: a path that is too long", manage("GET", "/models/entry/1.0/more"), uses="entry"),
        case("management: an OPTIONS request", manage("OPTIONS", "/")),
        case("management: an OPTIONS request to a model", manage("OPTIONS", "/models/entry"), uses="entry"),
        case("management: a prediction", Step("POST", ENTRY, management=True), uses="entry"),
        case("management: ping", manage("GET", "/ping")),
        case("a workflow", manage("GET", "/workflows")),
        case("a workflow prediction", ask("/wfpredict/none")),
        case("a token", manage("GET", "/token?type=inference")),
    ),
)  # fmt: skip
