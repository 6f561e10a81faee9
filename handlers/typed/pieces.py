"""Functions that are generators: each `yield` is a piece of the answers.

def predict(text: str): …; yield piece                     a generator for each row, in turns
def predict(texts: list[str]): …; yield [piece, …]         a piece for each row; None for none
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tsctl.handlers.requests.rows import in_memory
from tsctl.handlers.sdk.errors import InvalidResult
from tsctl.handlers.typed.answers import check_batch
from tsctl.handlers.typed.signature import Signature

END = b""  # the last piece of an answer whose pieces have been sent
SendPiece = Callable[[int, Any], None]


def stream_rows(generators: Sequence[Iterator[Any]], send: SendPiece) -> list[Any]:
    """Run the generators in turns, and send each piece at once.

    Returns:
        For each row its end, or the exception that its generator raised.
    """
    ended: dict[int, Any] = {}
    try:
        while len(ended) < len(generators):
            for row, generator in enumerate(generators):
                if row not in ended:
                    try:
                        send(row, next(generator))
                    except StopIteration:
                        ended[row] = END
                    except Exception as error:  # noqa: BLE001 - user code; the other rows go on
                        ended[row] = error
    finally:
        for generator in generators:
            with contextlib.suppress(Exception):  # user code, whose answer nobody awaits any more
                generator.close()  # type: ignore[attr-defined]
    return [ended[row] for row in range(len(generators))]


def send_batch(pieces: Any, rows: int, signature: Signature, send: SendPiece) -> None:
    """Send a piece to each row of the batch.

    Raises:
        InvalidResult: the generator did not yield one piece for each row.
    """
    try:
        found = in_memory(check_batch(pieces, rows, signature))
    except InvalidResult as error:
        raise InvalidResult(str(error).replace(" returned ", " yielded ", 1)) from None
    for row, piece in enumerate(found):
        if piece is not None:
            send(row, piece)
