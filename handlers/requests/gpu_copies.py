"""Between main memory and GPUs: what a batch needs there crosses the bus in one pinned copy for each dtype, on a stream
of its own; so do its answers, and their thread waits once.

    rows ──▶ side by side in pinned memory ──stream of copies──▶ the GPU ──▶ kernels of this batch ──▶ those of the next
                        an event ◀── pinned memory ◀──another stream──┘

A copy from pinned memory occupies neither the calling thread nor, on its own stream, the kernels of another batch. One
back waits for the kernels that were started before it, and for none that are started later; `.tolist()` and `.cpu()` of
a tensor on a GPU wait for all of the stream, and a copy each. torch keeps pinned memory for the next batch, and memory
on the GPU until what was started on the other stream has read it.

The device is made the current one first: a stream that is left for one of another device makes that the current one,
and so a context there, of some 600 MiB on the first GPU.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch

MOST_STAGED = 256 * 2**20  # bytes that cross together: torch keeps such pinned memory, two blocks of a power of two


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
    with torch.cuda.device(tensor.device):
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
        rows: of any shapes; those in main memory that have one dtype lie side by side on a GPU.
    """
    if device.type != "cuda":
        return [row.to(device) for row in rows]
    moved = {id(row): row.to(device) for row in rows if row.device.type != "cpu"}
    for alike in _by_dtype([row for row in rows if row.device.type == "cpu"]):
        moved.update(zip(map(id, alike), _to_gpu(alike, device), strict=True))
    return [moved[id(row)] for row in rows]


def stacked(rows: Sequence[torch.Tensor], device: torch.device) -> torch.Tensor:
    """Return rows of one shape as one tensor on a device; `torch.stack` raises for those of several shapes."""
    there = to_device(rows, device)
    whole = side_by_side(there) if device.type == "cuda" else None
    return torch.stack(there) if whole is None else whole


def staged(rows: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """Do as `to_device` for rows of `MOST_STAGED` bytes together; of more, move one after the other as they are."""
    if sum(row.nbytes for row in rows) > MOST_STAGED:
        return [row.to(device) for row in rows]
    return to_device(rows, device)


def sent(value: Any, device: torch.device) -> Any:
    """Return a value with all tensors in its dicts, lists and tuples on a device; as it is, if they are large together.

    Above `MOST_STAGED` bytes the caller decides: it may refuse some of them, or move them one after the other.

    Args:
        value: with tensors on the CPU. A list that begins with a number is taken for numbers, and not searched.
    """
    found = {id(tensor): tensor for tensor in _tensors_in(value)}
    if sum(tensor.nbytes for tensor in found.values()) > MOST_STAGED:
        return value
    return _with(value, dict(zip(found, to_device(list(found.values()), device), strict=True)))


def _to_gpu(rows: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    alike = all(row.shape == rows[0].shape for row in rows)
    with torch.cuda.device(device):  # memory is pinned in a context, too
        pinned = side_by_side(rows) if rows[0].is_pinned() else None
        if pinned is None:
            shape = (len(rows), *rows[0].shape) if alike else (sum(row.numel() for row in rows),)
            pinned = torch.empty(shape, dtype=rows[0].dtype, pin_memory=True)
            with torch.no_grad():  # into memory that is there
                if alike:
                    torch.stack(list(rows), out=pinned)
                else:
                    torch.cat([row.reshape(-1) for row in rows], out=pinned)
        copies, kernels = stream(device, "there"), torch.cuda.current_stream(device)
        with torch.cuda.stream(copies):
            there = pinned.to(device, non_blocking=True)
        kernels.wait_stream(copies)
        there.record_stream(kernels)
        _hold(pinned, copies)
    if alike:
        return list(there.unbind())
    parts = there.split([row.numel() for row in rows])
    return [part.view(row.shape) for part, row in zip(parts, rows, strict=True)]


def fetched(value: Any) -> Any:
    """Return a value with all tensors on GPUs, in its dicts, lists and tuples, in main memory; others stay as they are.

    A list that begins with a number is taken for numbers, and not searched.
    """
    found = {id(tensor): tensor for tensor in _tensors_in(value) if _is_on_gpu(tensor)}
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


def _is_on_gpu(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is one on a GPU whose values lie in its memory as they are."""
    return tensor.is_cuda and tensor.layout is torch.strided and not tensor.is_quantized


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors_in(each)
    elif isinstance(value, (list, tuple)) and value and not isinstance(value[0], (int, float)):
        for each in value:
            yield from _tensors_in(each)


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
