"""The errors that handlers raise on purpose."""

from collections.abc import Mapping


class PredictionException(Exception):  # the name that handlers import
    """The prediction failed; the client gets `message` with the status `error_code`."""

    def __init__(self, message: str, error_code: int = 500) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = error_code

    def __str__(self) -> str:
        return f"message : {self.message}, error_code : {self.error_code}"


class UnreadablePayload(ValueError):
    """The handler cannot read a request's body: its client gets 400, the rest of the batch runs."""


class UnreadableRows(UnreadablePayload):
    """At least one row of a batch is unreadable: `rows` maps each such row to its error."""

    def __init__(self, rows: Mapping[int, UnreadablePayload]) -> None:
        super().__init__("; ".join(str(error) for error in rows.values()))
        self.rows = dict(rows)


class TooManyPixels(Exception):
    """An image does not fit beside those of other rows of the batch: it is decoded later."""


class InvalidResult(TypeError):
    """A handler's result is not a list with one item for each row."""


class NotSerialisable(TypeError):
    """A handler's item cannot be encoded."""


class HandlerError(ValueError):
    """A handler, its model or its configuration cannot be used; the message names the reason.

    Attributes:
        refused: the reason alone, if it is that optimisations that were asked for cannot be done; else empty.
    """

    def __init__(self, message: str, refused: str = "") -> None:
        super().__init__(message)
        self.refused = refused
