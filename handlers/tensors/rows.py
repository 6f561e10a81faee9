"""The rows of a batch with tensors, each as its handler takes it, and the handler's answers as they are asked for."""

from collections.abc import Callable, Sequence
from typing import Any

from tsctl.handlers import wire
from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.tensor_heads import ElementHeads, InferHead
from tsctl.handlers.tensors.arrays import arrays_of
from tsctl.handlers.tensors.documents import in_bytes
from tsctl.handlers.tensors.numbers import fields_of
from tsctl.handlers.tensors.views import Views

Read = Callable[[Sequence[wire.Row]], list[Any]]


def read_rows(
    rows: Sequence[wire.Row], read: Read, views: Views, *, typed: bool
) -> tuple[list[Any], dict[int, UnreadablePayload]]:
    """Return what the handler finds in `data`, and the rows among these that cannot be read.

    Args:
        read: reads rows without tensors; those of a typed handler with tensors, too.
    """
    data: list[Any] = []
    refused: dict[int, UnreadablePayload] = {}
    for index, row in enumerate(rows):
        if isinstance(row.infer, InferHead):
            data.append(arrays_of(row.infer, row.params, views))
        elif row.infer is None or typed:
            data += read([row])
        else:
            try:
                data.append(fields_of(row, row.infer))
            except UnreadablePayload as error:
                data.append({})
                refused[index] = error
    return data, refused


def as_asked(rows: Sequence[wire.Row], answers: Sequence[wire.Answer]) -> list[wire.Answer]:
    """Return whole answers; those of the protocol in JSON have bytes for the outputs that are wanted so."""
    return [
        in_bytes(answer, row.infer) if isinstance(row.infer, ElementHeads) and row.infer.document else answer
        for row, answer in zip(rows, answers, strict=True)
    ]
