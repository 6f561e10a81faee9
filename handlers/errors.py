"""What a handler, or a built-in one, may raise on purpose."""

from collections.abc import Mapping


class PredictionException(Exception):  # the name that handlers import
    """The prediction failed, and the client is told `message` with the status `error_code`."""

    def __init__(self, message: str, error_code: int = 500) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = error_code

    def __str__(self) -> str:
        return f"message : {self.message}, error_code : {self.error_code}"


class UnreadablePayload(ValueError):
    """A request's body is not what the handler takes: its client gets 400, the rest of the batch runs."""


class UnreadableRows(UnreadablePayload):
    """Some rows of a batch, at least one, are unreadable: `rows` says which, and why."""

    def __init__(self, rows: Mapping[int, UnreadablePayload]) -> None:
        super().__init__("; ".join(str(error) for error in rows.values()))
        self.rows = dict(rows)


class InvalidResult(TypeError):
    """A handler returned something else than a list with one item for each row."""


class NotSerialisable(TypeError):
    """A handler's item is nothing that can be sent."""


class HandlerError(ValueError):
    """A handler file does not hold what an entry point needs."""
