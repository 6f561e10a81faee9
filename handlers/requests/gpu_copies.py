"""Between main memory and GPUs: what a batch needs there crosses the bus in one pinned copy for each dtype, on a stream
of its own; so do its answers, and their thread waits once.

    rows ──▶ side by side in pinned memory ──stream of copies──▶ the GPU ──▶ kernels of this batch ──▶ those of the next
                        an event ◀── pinned memory ◀──another stream──┘

A copy from pinned memory occupies neither the calling thread nor, on its own stream, the kernels of another batch. One
back waits for the kernels that were started before it, and for none that are started later; `.tolist()` and `.cpu()` of
a tensor on a GPU wait for all of the stream, and a copy each. torch keeps pinned memory for the next batch, and memory
on the GPU until what was started on the other stream has read it.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch


class Coming(NamedTuple):
    """A copy that is under way.

    Attributes:
        host: its place in main memory.
        end: None where there is nothing to wait for.
    """

    host: torch.Tensor
    end: torch.cuda.Event | None

    def wait(self) -> torch.Tensor:
        """Return the tensor once it is there."""
        if self.end is not None:
            self.end.synchronize()
        return self.host


def begin(tensor: torch.Tensor) -> Coming:
    """Start the copy of a tensor into main memory, behind what the calling thread has started on the GPU."""
    if tensor.device.type != "cuda":
        return Coming(tensor, None)
    copies, kernels = stream(tensor.device, "back"), torch.cuda.current_stream(tensor.device)
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    copies.wait_stream(kernels)
    with torch.cuda.stream(copies):
        host.copy_(tensor, non_blocking=True)
    tensor.record_stream(copies)
    end = torch.cuda.Event(blocking=True)  # the thread sleeps, where it would compute until then
    end.record(copies)
    return Coming(host, end)


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in main memory."""
    return begin(tensor).wait()


def to_device(rows: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """Return rows on a device, in their shapes; what the calling thread starts on a GPU then waits for them.

    Args:
        rows: on the CPU, of any shapes; those of one dtype lie side by side on a GPU.
    """
    if device.type != "cuda":
        return [row.to(device) for row in rows]
    moved: dict[int, torch.Tensor] = {}
    for alike in _by_dtype(rows):
        moved.update(zip(map(id, alike), _to_gpu(alike, device), strict=True))
    return [moved[id(row)] for row in rows]


def _to_gpu(rows: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    sizes = [row.numel() for row in rows]
    pinned = side_by_side(rows) if rows[0].is_pinned() else None
    if pinned is None:
        pinned = torch.empty(sum(sizes), dtype=rows[0].dtype, pin_memory=True)
        for row, place in zip(rows, pinned.split(sizes), strict=True):
            place.view(row.shape).copy_(row)
    copies, kernels = stream(device, "there"), torch.cuda.current_stream(device)
    with torch.cuda.stream(copies):
        there = pinned.to(device, non_blocking=True)
    kernels.wait_stream(copies)
    there.record_stream(kernels)
    _hold(pinned, copies)
    return [part.view(row.shape) for part, row in zip(there.view(-1).split(sizes), rows, strict=True)]


def fetched(value: Any) -> Any:
    """Return a value with all tensors on GPUs, in its dicts, lists and tuples, in main memory; others stay as they are.

    A list that begins with a number is taken for numbers, and not searched.
    """
    found = {id(tensor): tensor for tensor in _on_gpus(value)}
    return _with(value, _brought(list(found.values()))) if found else value


def side_by_side(rows: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """Return rows that follow one another in one memory as one tensor of them, without a copy; None for others."""
    first, size = rows[0], rows[0].numel()
    memory, start = first.untyped_storage().data_ptr(), first.storage_offset()
    if not all(
        row.untyped_storage().data_ptr() == memory
        and row.storage_offset() == start + place * size
        and row.is_contiguous()
        and row.shape == first.shape
        for place, row in enumerate(rows)
    ):
        return None
    return torch.as_strided(first, (len(rows), *first.shape), (size, *first.stride()), start)


@cache
def stream(device: torch.device, way: str) -> torch.cuda.Stream:  # noqa: ARG001 - one for each way
    """Return the stream for copies to or from a GPU."""
    return torch.cuda.Stream(device)


_held: deque[tuple[torch.cuda.Event, torch.Tensor]] = deque()  # the oldest first
_holding = threading.Lock()


def _hold(pinned: torch.Tensor, copies: torch.cuda.Stream) -> None:
    """Keep memory until its copy has ended: torch does so for its own, and not for what others have pinned."""
    with _holding:
        while _held and _held[0][0].query():
            _held.popleft()
        _held.append((copies.record_event(), pinned))


def _on_gpus(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.is_cuda and value.layout is torch.strided and not value.is_quantized:
            yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _on_gpus(each)
    elif isinstance(value, (list, tuple)) and value and not isinstance(value[0], (int, float)):
        for each in value:
            yield from _on_gpus(each)


def _with(value: Any, brought: dict[int, torch.Tensor]) -> Any:
    """Return a value with tensors in place of others, by the others' ids; of lists and dicts, plain ones."""
    if isinstance(value, torch.Tensor):
        return brought.get(id(value), value)
    if isinstance(value, dict):
        return {key: _with(each, brought) for key, each in value.items()}
    if isinstance(value, (list, tuple)) and value and not isinstance(value[0], (int, float)):
        made = [_with(each, brought) for each in value]
        if isinstance(value, list):
            return made
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    return value


def _brought(tensors: Sequence[torch.Tensor]) -> dict[int, torch.Tensor]:
    """Return the tensors in main memory, by their ids."""
    begun = [(each, begin(_joined([tensor.detach() for tensor in each]))) for each in _by_dtype(tensors)]
    for last in {each[0].device: coming for each, coming in begun}.values():  # all of a GPU are on one stream
        last.wait()
    made = {}
    for each, coming in begun:
        flat = coming.host.view(-1)
        for tensor, part in zip(each, flat.split([tensor.numel() for tensor in each]), strict=True):
            made[id(tensor)] = part.view(tensor.shape)
    return made


def _by_dtype(tensors: Sequence[torch.Tensor]) -> Iterable[list[torch.Tensor]]:
    """Return tensors of one device and dtype together."""
    alike: dict[Any, list[torch.Tensor]] = {}
    for tensor in tensors:
        alike.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    return alike.values()


def _joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return tensors of one dtype, on one GPU, one after the other in one memory."""
    whole = side_by_side(tensors)
    if whole is not None:
        return whole
    return torch.cat([tensor.reshape(-1) for tensor in tensors])
