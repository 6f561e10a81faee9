"""The responses for a handler's items."""

from tests.lab.conformance.case import Case, Group, ask, ask_json, case


def gives(name: str, word: str) -> Case:
    return case(name, ask_json("/predictions/results", {"give": word}), uses="results")


def says(name: str, **wish: object) -> Case:
    return case(name, ask_json("/predictions/speaks", wish), uses="speaks")


GROUP = Group(
    "results",
    "What a handler's answer becomes",
    (
        gives("bytes are sent as they are", "bytes"),
        gives("a bytearray is sent as it is", "bytearray"),
        gives("a string is sent as UTF-8, without quotes", "str"),
        gives("an empty string is an empty body", "empty str"),
        gives("empty bytes are an empty body", "empty bytes"),
        gives("a dict is sent as JSON", "dict"),
        gives("an empty dict is sent as JSON", "empty dict"),
        gives("a list is sent as JSON", "list"),
        gives("lists of floats are sent as JSON", "nested list"),
        gives("an integer is sent as JSON", "int"),
        gives("a float is sent as JSON", "float"),
        gives("True is sent as JSON", "true"),
        gives("None is sent as JSON", "none"),
        gives("a tuple is sent as a JSON list", "tuple"),
        gives("NaN is sent as NaN", "nan"),
        gives("infinity is sent as Infinity", "infinity"),
        gives("keys that are numbers become strings", "number keys"),
        gives("a set cannot be sent", "set"),
        gives("an object cannot be sent", "object"),
        gives("a complex number cannot be sent", "complex"),
        gives("a dict that holds a tensor cannot be sent", "dict of tensor"),
        gives("a dict that holds bytes cannot be sent", "dict of bytes"),
        gives("a dict whose keys are tuples cannot be sent", "tuple keys"),
        says("an answer has status 200 and no type"),
        says("a handler chooses the content type", type="text/csv"),
        says("a handler chooses the status and its phrase", status=201, phrase="Made"),
        says("a handler chooses the status without a phrase", status=202),
        says("a status of 400 keeps the handler's body", status=400, phrase="No"),
        says("a status of 404 keeps the handler's body", status=404),
        says("a status of 507 keeps the handler's body", status=507, phrase="Full"),
        says("a status for all rows", all=203, phrase="All"),
        says("a handler sets headers", headers={"X-Mine": "yes", "x-lower": "too"}),
        says("a header content-type is the content type", headers={"content-type": "text/html"}),
        says("Cache-Control is the server's", headers={"Cache-Control": "max-age=60"}),
        says("x-request-id is the server's", headers={"x-request-id": "mine"}),
        says("what the context told at initialize", tell="initialize"),
        says("the status before it is set", tell="status"),
        says("the status after it is set", status=201, phrase="Made", tell="status"),
        says("the headers before they are set", tell="headers"),
        says("the headers after they are set", headers={"X-Mine": "yes"}, type="a/b", tell="headers"),
        says("the content type after it is set", type="a/b", tell="content type"),
        says("the request ids", tell="request id"),
        says("the request processor", tell="processor"),
        says("a request header that was not sent", tell="missing header"),
        says("an attribute of the context is kept", tell="attribute"),
        case(
            "request headers are found with regard to case",
            ask_json("/predictions/speaks", {"tell": "header case"}, headers={"X-Mine": "yes"}),
            uses="speaks",
        ),
        case(
            "a client's x-request-id",
            ask("/predictions/entry", headers={"X-Request-Id": "given-by-the-client-1"}),
            uses="entry",
        ),
    ),
)
