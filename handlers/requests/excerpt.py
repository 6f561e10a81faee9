"""Texts of exceptions, cut before they are sent: a handler's exception may contain a whole tensor as text."""

from tsctl.handlers.texts.encodable import sendable

LONGEST_MESSAGE = 10_000  # characters
LONGEST_TRACEBACK = 50_000  # characters; with the note on the cut, less than wire.LONGEST_TEXT


def excerpt(text: str, most: int = LONGEST_MESSAGE) -> str:
    """Return the first `most` characters, and how many more there were."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} characters more)"


def message_of(error: BaseException) -> str:
    """Return the text of an exception, cut."""
    return excerpt(sendable(error))
