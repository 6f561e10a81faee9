"""The error of a target."""


class TargetError(Exception):
    """A target cannot be served.

    Attributes:
        hint: the remedy, as the end of a message or below one.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
