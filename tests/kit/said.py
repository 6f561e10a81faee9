"""Tables in text files (told.py): what a function is given, and what it says of that.

> {"rate": 33.0}             what it is given, JSON or text: as the test reads it
< 33 requests/s come, …      what it says, each line of it
"""

from collections.abc import Callable


def say(lines: list[str], says: Callable[[str], str]) -> list[str]:
    """Give a function all of this again, and return the lines as they would have to be."""
    made: list[str] = []
    for line in lines:
        if line.startswith(">"):
            made += [line, *(f"< {each}".rstrip() for each in says(line[2:]).split("\n"))]
    return made


def reason(call: Callable[[], object], *errors: type[Exception]) -> str:
    """Return the sentence of the error that a call raises; one that raises none is accepted."""
    try:
        return f"accepted: {call()!r}"
    except errors as error:
        return str(error)
