"""Large tensors in JSON are packed in slices, to the same bytes as in one go, and each slice is bounded."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tsctl.daemon.core.arena import SHARED_FROM, Arena, Lease
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps, finish
from tsctl.daemon.extensions.tensors.elements import count_steps, pack
from tsctl.daemon.extensions.tensors.json_data import pack_steps
from tsctl.daemon.extensions.tensors.slices import SLICED_FROM

MANY = 60_000  # elements: with every datatype more than one window


def steps_of(steps: Steps[Any]) -> int:
    count = 1
    try:
        while True:
            next(steps)
            count += 1
    except StopIteration:
        return count


def nested(values: list[Any], shape: list[int]) -> list[Any]:
    for size in shape[:0:-1]:
        values = [values[at : at + size] for at in range(0, len(values), size)]
    return values


def packed(datatype: str, shape: list[int], text: str) -> bytes:
    assert len(text) > SLICED_FROM
    arena = Arena(64 * 2**20)
    made = finish(pack_steps("input a", datatype, shape, msgspec.Raw(text.encode()), arena.take))
    assert isinstance(made, Lease) == (len(made) >= SHARED_FROM)
    return bytes(made)


VALUES: dict[str, Callable[[int], Any]] = {
    "INT32": lambda number: number - 7,
    "FP32": lambda number: number * 0.37,
    "BOOL": lambda number: number % 3 == 0,
    "BYTES": lambda number: ["", 'a "text", [really]', "é\n\\", "]", ","][number % 5],
}


SHAPES = [[MANY], [1, MANY], [MANY, 1], [3, 4, MANY // 12], [1, 1, MANY // 2, 2]]
SEPARATORS = [(",", ":"), (", ", ": "), (" \n,\t", ":")]


# Each pair of datatype, shape and separators comes once, of all combinations a third.
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("datatype", VALUES)
def test_slices_make_the_bytes_of_the_whole(datatype: str, shape: list[int]) -> None:
    separators = SEPARATORS[([*VALUES].index(datatype) + SHAPES.index(shape)) % 3]
    values = [VALUES[datatype](number) for number in range(MANY)]
    whole = pack(datatype, values)

    for form in (values, nested(values, shape))[shape == [MANY] :]:
        text = json.dumps(form, separators=separators, ensure_ascii=False)
        assert packed(datatype, shape, text) == whole


def test_one_text_may_be_larger_than_any_window() -> None:
    values = ["a", "b" * 600_000, '\\"' * 100_000, "c"]

    assert packed("BYTES", [4], json.dumps(values)) == pack("BYTES", values)


ONES = ["1"] * MANY


@pytest.mark.parametrize(
    ("datatype", "shape", "text"),
    [
        ("INT32", [MANY], f"[{','.join(ONES[1:])}]"),
        ("INT32", [MANY], f"[{','.join(ONES)},1]"),
        ("INT32", [MANY], f"[{','.join(ONES[1:])},1.5]"),
        ("INT8", [MANY], f"[{','.join(ONES[1:])},300]"),
        ("INT32", [MANY], f'[{",".join(ONES[1:])},"]"]'),
        ("INT32", [MANY], f"[{','.join(ONES[1:])},[1]]"),
        ("INT32", [2, MANY // 2], f"[[{','.join(ONES[: MANY // 2 - 1])}],[{','.join(ONES[: MANY // 2 + 1])}]]"),
        ("INT32", [2, MANY // 2], f"[[[{','.join(ONES[: MANY // 2])}],[{','.join(ONES[: MANY // 2])}]]]"),
        ("INT32", [MANY, 1], f"[{','.join(['[1]'] * (MANY - 1))},[]]"),
        ("INT32", [0], f"[{','.join(['[]'] * MANY)}]"),
        ("BYTES", [MANY], f'[{",".join(chr(34) * 2 for _ in ONES)},""]'),
        ("BYTES", [MANY], f"[{','.join(chr(34) * 2 for _ in ONES[1:])}]"),
        ("BYTES", [MANY], f"[{','.join(chr(34) * 2 for _ in ONES[1:])},1]"),
        ("BYTES", [MANY // 2, 2], f"[{','.join(['[[]]'] * MANY)}]"),
        ("BYTES", [1], f"[[{','.join(ONES)}]]"),
        ("BYTES", [2, 5000], json.dumps([["a"] * 5001, ["a"] * 4999])),
    ],
    ids=range(16),
)
def test_what_does_not_fit_is_refused(datatype: str, shape: list[int], text: str) -> None:
    with pytest.raises(BadRequest, match="input a"):
        packed(datatype, shape, text)


@pytest.mark.parametrize(
    ("datatype", "element", "count"), [("BYTES", '""', 400_000), ("INT32", "1", 400_000), ("BYTES", '"abc"', 400_000)]
)
def test_no_slice_has_more_elements_than_others_can_wait_for(datatype: str, element: str, count: int) -> None:
    raw = msgspec.Raw(f"[{','.join([element] * count)}]".encode())

    assert steps_of(pack_steps("input a", datatype, [count], raw)) > count / 20_000


def test_room_is_taken_for_what_may_be_there_and_not_for_all_that_is_announced() -> None:
    asked: list[int] = []
    raw = msgspec.Raw(f"[{','.join(ONES)}]".encode())

    with pytest.raises(BadRequest):
        finish(pack_steps("input a", "INT32", [10**12], raw, asked.append))

    assert 0 < max(asked) <= 4 * (MANY + 1)


def test_elements_are_counted_in_steps() -> None:
    assert steps_of(count_steps(bytes(4 * 400_000))) > 90
    assert finish(count_steps(bytes(4 * 400_000))) == 400_000
