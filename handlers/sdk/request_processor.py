"""One request as its handler sees it: the headers, and the status and headers of the response.

The members, and the arguments, are those of TorchServe 0.12 (ts/context.py). A module of its own, because it is
compiled, unlike the context, on which handlers set attributes: interpreted, it took an eighth of the worker's
instructions for a request. Handlers pass values of any type, and compiled code checks types, so all of them are `Any`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tsctl.handlers.compiling import mypyc_attr

RequestHeaders = Mapping[str, Any] | Callable[[], dict[str, Any]]


@mypyc_attr(allow_interpreted_subclasses=True)  # those of handlers and their tests, which may copy one, too
class RequestProcessor:
    """One request's headers, and the status and headers of its response.

    Args:
        request_header: the headers, or a function that returns them, called when the handler first asks for one.
    """

    def __init__(self, request_header: RequestHeaders) -> None:
        self._status_code: Any = 200
        self._reason_phrase: Any = None
        self._response_header: Any = {}
        self.status_was_set = False
        self._request_header: Any = request_header if callable(request_header) else dict(request_header)

    def get_request_property(self, key: Any) -> Any:
        return self.get_request_properties().get(key)

    def get_request_properties(self) -> Any:
        headers = self._request_header
        if callable(headers):
            self._request_header = headers = headers()
        return headers

    def report_status(self, code: Any, reason_phrase: Any = None) -> None:
        self._status_code = code
        self._reason_phrase = reason_phrase
        self.status_was_set = True

    def get_response_status_code(self) -> Any:
        return self._status_code

    def get_response_status_phrase(self) -> Any:
        return self._reason_phrase

    def add_response_property(self, key: Any, value: Any) -> None:
        self._response_header[key] = value

    def get_response_header(self, key: Any) -> Any:
        return self._response_header.get(key)

    def get_response_headers(self) -> Any:
        return self._response_header


def make_processors(headers: Sequence[RequestHeaders]) -> list[RequestProcessor]:
    """Return one for the headers of each request: compiled, as the context that wants them is not."""
    return [RequestProcessor(each) for each in headers]
