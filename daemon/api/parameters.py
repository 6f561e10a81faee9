"""The parameters of a management request: from the query, or from a JSON body."""

from typing import Any

from daemon.errors import BadRequest
from daemon.http.messages import Request


class Parameters:
    """Named values as text or JSON; each getter raises BadRequest with the name and the value."""

    def __init__(self, request: Request) -> None:
        self._values: dict[str, Any] = dict(request.query)
        if request.header("content-type").partition(";")[0].strip() == "application/json" and request.body:
            document = request.json()
            if not isinstance(document, dict):
                raise BadRequest("The body should be a JSON object.")
            self._values = document

    def text(self, name: str) -> str | None:
        value = self._values.get(name)
        if value is not None and not isinstance(value, str):
            raise BadRequest(f"{name} is {value!r}, and should be a string.")
        return value or None

    def whole(self, name: str, least: int = 0) -> int | None:
        """A whole number; -1, which TorchServe's clients send for "not given", is None."""
        value = self._values.get(name)
        if value is None or value == "":
            return None
        try:
            number = int(value) if not isinstance(value, (bool, float)) or value == int(value) else None
        except (TypeError, ValueError):
            number = None
        if number == -1:
            return None
        if number is None or number < least:
            raise BadRequest(f"{name} is {value!r}, and should be a whole number of at least {least}.")
        return number

    def number(self, name: str) -> float | None:
        """A number of at least 0; -1 is None."""
        value = self._values.get(name)
        if value is None or value == "":
            return None
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = -2.0
        if number == -1:
            return None
        if not 0 <= number < 1e9:
            raise BadRequest(f"{name} is {value!r}, and should be a number of at least 0.")
        return number

    def flag(self, name: str, default: bool) -> bool:
        value = self._values.get(name)
        if value is None:
            return default
        return str(value).lower() == "true"
