"""The rows of a batch are decoded on a worker's threads."""

import threading
from collections.abc import Callable, Iterator

import pytest
import torch

from tsctl.handlers.builtin import fast_images
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.support.decoders import Decoders
from tsctl.handlers.builtin.vision import example_image


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def where(row: object) -> tuple[str, int]:
    return threading.current_thread().name.partition("_")[0], torch.get_num_threads()


def waiting(together: threading.Barrier) -> Callable[[int], int]:
    """Make a function that gives its row back once enough threads run it."""

    def wait(row: int) -> int:
        together.wait(20.0)
        return row

    return wait


def test_each_decodes_alone_and_the_caller_keeps_its_threads() -> None:
    torch.set_num_threads(3)

    assert set(Decoders().map(where, range(30))) == {("decode", 1)}
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize(("threads", "rows"), [(1, 8), (4, 1)])
def test_one_thread_or_one_row_stays_with_the_caller(threads: int, rows: int) -> None:
    torch.set_num_threads(threads)

    assert set(Decoders().map(where, range(rows))) == {("MainThread", threads)}


def test_a_new_number_of_threads_counts_at_once() -> None:
    decoders = Decoders()
    for threads in (2, 3):
        torch.set_num_threads(threads)
        together = threading.Barrier(threads)

        assert sorted(decoders.map(waiting(together), range(threads))) == list(range(threads))


def test_rows_keep_their_order_and_the_unreadable_are_found() -> None:
    torch.set_num_threads(2)
    handler = ImageClassifier()
    alone = handler.decode_row({"body": example_image()})
    fast_images.use(handler)
    data = [{"body": example_image()}, {"body": b"no image"}, {"body": [[1.0]]}, {"body": example_image()}]

    unreadable = handler.prepare(data)

    assert list(unreadable) == [1]
    assert torch.equal(data[2].prepared, torch.tensor([[1.0]]))  # type: ignore[attr-defined]
    assert all(fast_images.pixel_drift(alone, data[row].prepared) < 1.001 / 255 for row in (0, 3))  # type: ignore[attr-defined]


def test_a_subclass_with_decoding_of_its_own_stays_on_one_thread() -> None:
    class Mine(ImageClassifier):
        def decode_row(self, row: object) -> torch.Tensor:
            return super().decode_row(row)

    handler = Mine()

    assert fast_images.use(handler)
    assert handler.spread is map
