"""`TextIteratorStreamerBatch`: the texts of a whole batch, piece by piece, while a language model generates them.

For handlers that call `model.generate(streamer=…)` of transformers in a thread; transformers is imported when an
instance is created.
"""

from collections.abc import Iterator
from typing import Any


class TextIteratorStreamerBatch:
    """One `TextIteratorStreamer` of transformers for each row.

    Yields, for each step, a list with `{"text": piece}` for each row, until the first row ends.
    """

    def __init__(
        self,
        tokenizer: Any,
        batch_size: int,
        skip_prompt: bool = False,
        timeout: float | None = None,
        **decode_kwargs: Any,
    ) -> None:
        from transformers.generation.streamers import TextIteratorStreamer

        self.batch_size = batch_size
        self.streamers = [
            TextIteratorStreamer(tokenizer, skip_prompt, timeout, **decode_kwargs) for _ in range(batch_size)
        ]
        self._iterators = [iter(each) for each in self.streamers]

    def put(self, value: Any) -> None:
        """Add the next tokens: token ids, shape (rows,) or (rows, tokens).

        Raises:
            ValueError: the number of rows differs from `batch_size`.
        """
        if value.shape[0] != self.batch_size:
            raise ValueError(f"the streamer was made for {self.batch_size} rows, and is given {value.shape[0]}")
        for index, streamer in enumerate(self.streamers):
            streamer.put(value[index : index + 1])

    def end(self) -> None:
        for streamer in self.streamers:
            streamer.end()

    def __iter__(self) -> Iterator[list[dict[str, str]]]:
        return self

    def __next__(self) -> list[dict[str, str]]:
        pieces: list[str | None] = [next(each, None) for each in self._iterators]
        if None in pieces:
            raise StopIteration
        return [{"text": str(piece)} for piece in pieces]
