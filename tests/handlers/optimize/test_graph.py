"""A batch runs in the smallest graph that holds it. A graph of these tests runs a function again, not kernels."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tsctl.handlers.optimize import graph
from tsctl.handlers.optimize.trees import tensors_of


class Again:
    """Runs a function again, into what it returned first."""

    def __init__(self, run: Callable[[], Any], output: Any) -> None:
        self._run, self.output = run, output
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1
        for mine, its in zip(tensors_of(self.output), tensors_of(self._run()), strict=True):
            mine.copy_(its)


def captured(model: nn.Module, *rows: int) -> tuple[graph.Graphed, dict[int, Again]]:
    """Return a model with graphs for so many rows each."""
    graphs: list[Again] = []

    def capture(run: Callable[[], Any]) -> tuple[Again, Any]:
        output = run()
        graphs.append(Again(run, output))
        return graphs[-1], output

    graphed = graph.Graphed(model, capture)
    for count in rows:
        graphed.capture(lambda count=count: graphed(torch.zeros(count, 3)))  # type: ignore[misc]
        graphs[-1].replays = 0
    return graphed, dict(zip(rows, graphs, strict=True))


@pytest.fixture(autouse=True)
def inference() -> Any:
    with torch.inference_mode():
        yield


@given(st.integers(1, 1000))
def test_there_is_a_graph_for_each_power_of_two_and_the_batch_size_the_largest_first(batch_size: int) -> None:
    got = list(graph.sizes(batch_size))

    assert got == sorted({batch_size, *(2**n for n in range(10) if 2**n < batch_size)}, reverse=True)


@pytest.mark.parametrize(("rows", "of"), [(1, 1), (2, 2), (3, 4), (5, 6), (6, 6)])
def test_a_batch_runs_in_the_smallest_graph_that_holds_it(rows: int, of: int) -> None:
    model = nn.Linear(3, 2)
    graphed, graphs = captured(model, 6, 4, 2, 1)
    images = torch.randn(rows, 3)

    answers = graphed(images)

    torch.testing.assert_close(answers, model(images))
    assert {size: each.replays for size, each in graphs.items()} == {size: size == of for size in graphs}


@pytest.mark.parametrize(
    "images",
    [torch.ones(5, 3), torch.ones(2, 4), torch.ones(2, 3, dtype=torch.float64), torch.ones(2, 3, device="meta")],
)
def test_what_no_graph_holds_runs_without(images: torch.Tensor) -> None:
    graphed, graphs = captured(nn.Identity(), 4)

    assert graphed(images) is images
    assert graphs[4].replays == 0


def test_with_gradients_the_model_itself_runs() -> None:
    graphed, graphs = captured(nn.Linear(3, 2), 4)

    with torch.inference_mode(mode=False), torch.enable_grad():
        answers = graphed(torch.ones(2, 3))

    assert answers.requires_grad
    assert graphs[4].replays == 0


def test_the_model_may_be_called_without_inference_mode_later() -> None:
    graphed, graphs = captured(nn.Identity(), 4)

    with torch.inference_mode(mode=False), torch.no_grad():
        assert graphed(torch.ones(2, 3)).tolist() == [[1.0] * 3] * 2

    assert graphs[4].replays == 1


def halved(pixels: torch.Tensor) -> torch.Tensor:
    return pixels.to(torch.float32) / 2


def best_of(output: torch.Tensor) -> torch.Tensor:
    return output.max(1, keepdim=True).values


def whole(model: nn.Module, rows: int) -> tuple[graph.Graphed, Again]:
    """Return a model whose graph begins with pixels and ends with answers."""
    graphs: list[Again] = []

    def capture(run: Callable[[], Any]) -> tuple[Again, Any]:
        graphs.append(Again(run, run()))
        return graphs[-1], graphs[-1].output

    graphed = graph.Graphed(model, capture, halved, best_of)
    graphed.capture(lambda: graphed(torch.zeros(rows, 3, dtype=torch.uint8)))
    graphs[-1].replays = 0
    return graphed, graphs[-1]


def test_pixels_are_normalised_and_answers_made_in_the_graph() -> None:
    graphed, again = whole(nn.Identity(), 4)
    pixels = torch.tensor([[1, 2, 3], [9, 7, 8]], dtype=torch.uint8)

    output = graphed(pixels)

    assert graphed.takes_pixels
    assert output.tolist() == [[0.5, 1.0, 1.5], [4.5, 3.5, 4.0]]
    assert graphed.answers is not None and graphed.answers.tolist() == [[1.5], [4.5]]
    assert again.replays == 1


def test_answers_stay_when_the_next_batch_runs() -> None:
    graphed, _ = whole(nn.Identity(), 4)
    graphed(torch.full((2, 3), 8, dtype=torch.uint8))
    answers = graphed.answers

    graphed(torch.zeros(4, 3, dtype=torch.uint8))

    assert answers is not None and answers.tolist() == [[4.0], [4.0]]


@pytest.mark.parametrize(
    "images", [torch.full((5, 3), 8, dtype=torch.uint8), torch.full((2, 3), 4.0)], ids=["too many", "no pixels"]
)
def test_without_a_graph_pixels_are_normalised_and_answers_are_left_to_others(images: torch.Tensor) -> None:
    graphed, again = whole(nn.Identity(), 4)
    graphed(torch.zeros(2, 3, dtype=torch.uint8))

    output = graphed(images)

    assert output.tolist() == [[4.0] * 3] * len(images)
    assert graphed.answers is None, "not those of the batch before"
    assert again.replays == 1


class Named(nn.Module):
    def __init__(self, kind: type[dict[str, Any]]) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, images: torch.Tensor) -> Any:
        return self.kind(out=images, further=self.kind(out=images.sum(1)))


@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_an_output_of_a_class_of_dict_is_that_of_its_own_batch_each_time(kind: type[dict[str, Any]]) -> None:
    graphed, _ = captured(Named(kind), 4)

    kept = [graphed(torch.full((3, 3), number)) for number in (1.0, 2.0)]
    for number, answers in enumerate(kept, 1):  # an answer stays when the next batch runs
        assert type(answers) is kind
        assert answers["out"].tolist() == [[number] * 3] * 3
        assert answers["further"]["out"].tolist() == [3 * number] * 3


class Total(nn.Module):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.sum()


def test_a_call_with_more_than_one_tensor_and_an_output_without_rows_are_refused() -> None:
    graphed, _ = captured(nn.Bilinear(3, 3, 2))

    with pytest.raises(graph.NotGraphable, match="with one tensor, and the handler passes something else"):
        graphed.capture(lambda: graphed(torch.ones(2, 3), torch.ones(2, 3)))
    with pytest.raises(graph.NotGraphable, match=r"^the output for 4 rows is \(\): its rows cannot be told apart$"):
        captured(Total(), 4)


def test_on_a_processor_there_are_none() -> None:
    assert graph.refusal(torch.device("cpu")) == "a CUDA graph runs on a GPU, and the model is on the cpu"
    assert graph.refusal(torch.device("cuda:1")) == ""
