"""A model on integers computes what it did in float32, within the steps of uint8."""

import copy
from typing import Any

import pytest
import torch
from torch import fx, nn

from tests.handlers.optimize.int8.nets import (
    IMAGES,
    NETS,
    NUMBERS,
    Branching,
    Masked,
    Residual,
    inputs_of,
    made,
    needs_integers,
    on_integers,
)  # fmt: skip
from tests.handlers.optimize.nets import settled
from tests.handlers.optimize.test_bfloat16 import cpuinfo
from tsctl.handlers.optimize.checks.drift import drift
from tsctl.handlers.optimize.int8 import layers
from tsctl.handlers.optimize.int8.layers import Int8Layer, dequantise, quantise
from tsctl.handlers.optimize.int8.model import Int8, refusal

CPU = torch.device("cpu")


@pytest.mark.parametrize("flag", ["amx_int8", "avx512_vnni", "avx_vnni"])
def test_intel_and_amd_with_these_flags_have_a_fast_path(flag: str) -> None:
    assert refusal(nn.Identity(), CPU, cpuinfo(flag)) == ""


@pytest.mark.parametrize("text", [cpuinfo("avx2 avx512f avx512_bf16"), cpuinfo("asimd asimddp i8mm", "Features")])
def test_other_processors_are_refused_by_name(text: str) -> None:
    assert refusal(nn.Identity(), CPU, text) == (
        "the processor (Some Chip) has no fast path for int8: neither AMX nor VNNI; name `bf16` or `compile`"
    )


def test_a_gpu_is_refused_with_a_remedy() -> None:
    assert refusal(nn.Identity(), torch.device("cuda:0")) == "`int8` is for processors; on a GPU name `bf16`"


@pytest.mark.parametrize("name", layers.OPERATORS)
def test_a_torch_whose_operators_have_changed_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(layers.OPERATORS, name, "qx x_scale")

    reason = refusal(nn.Identity(), CPU, cpuinfo("avx512_vnni"))

    assert reason.startswith(f"torch {torch.__version__} has other int8 operators than tsctl knows")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_is_refused_with_a_remedy() -> None:
    model = torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))

    assert refusal(model, CPU, cpuinfo("avx512_vnni")) == (
        "the model is TorchScript, whose layers cannot be replaced; archive its Python code and weights"
    )


@needs_integers
@pytest.mark.parametrize("name", NETS)
def test_the_outputs_stay_near_and_all_layers_that_can_be_are_on_integers(name: str) -> None:
    build, shape, count = NETS[name]
    model, inputs = made(build), inputs_of(shape)
    with torch.inference_mode():
        expected = copy.deepcopy(model)(inputs)

    int8, number = on_integers(model, inputs)

    with torch.inference_mode():
        assert 0 < drift(expected, int8(inputs)) < 0.06, int8.whole
        assert drift(expected[:1], int8(inputs[:1])) < 0.1  # any number of rows
        assert drift(int8(inputs), int8(inputs)) == 0.0  # inputs stay as they were
    assert number == count
    assert sum(isinstance(module, Int8Layer) for module in set(int8.modules())) == count


@needs_integers
def test_between_layers_values_stay_integers() -> None:
    int8, _ = on_integers(made(Residual), inputs_of(IMAGES))

    graph = int8.whole.graph
    assert isinstance(graph, fx.GraphModule)
    called = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    assert called.count(quantise) == 2  # the image, and the pooled features before the head
    assert called.count(dequantise) == 0


@needs_integers
def test_float32_weights_are_given_up() -> None:
    model = made(Residual)
    before = sum(each.numel() for each in model.parameters())

    int8, _ = on_integers(model, inputs_of(IMAGES))

    assert before > 1000
    assert sum(each.numel() for each in int8.parameters()) == 0
    assert next(int8.parameters()).dtype == torch.float32  # which code of models asks for


@needs_integers
def test_a_layer_that_never_ran_stays_in_float32() -> None:
    model = made(Branching)

    int8, _ = on_integers(model, inputs_of(IMAGES))

    assert type(int8.never) is nn.Linear
    assert int8.never.weight.dtype == torch.float32


@needs_integers
def test_arguments_by_name_and_other_members_work_as_before() -> None:
    model: Any = made(Masked)
    numbers = inputs_of(NUMBERS)
    model.labels = ["a", "b"]
    mask = torch.zeros_like(numbers)
    with torch.inference_mode():
        expected = model(numbers, mask=mask)

    int8, _ = on_integers(model, numbers)

    assert int8.labels == ["a", "b"]
    with torch.inference_mode():
        assert drift(expected, int8(numbers=numbers, mask=mask)) < 0.06


@pytest.mark.heavy  # imports transformers
@needs_integers
def test_every_linear_layer_of_an_encoder_of_transformers_is_on_integers() -> None:
    transformers = pytest.importorskip("transformers")
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=99, max_position_embeddings=32, **shape)
    model = settled(transformers.BertForSequenceClassification(config))
    linear = sum(type(module) is nn.Linear for module in model.modules())
    words = {"input_ids": torch.arange(40).view(4, 10), "attention_mask": torch.ones(4, 10, dtype=torch.int64)}
    with torch.inference_mode():
        expected = copy.deepcopy(model)(**words)

        int8 = Int8(model)
        number = int8.convert(int8.calibrate(lambda: int8(**words)))

        assert number == linear == 14
        assert 0 < drift(expected.logits, int8(**words).logits) < 0.1


@needs_integers
def test_weights_packed_for_images_of_another_size_give_the_same() -> None:
    larger = inputs_of((2, 3, 33, 21))
    models = [Int8(made(Residual)), Int8(made(Residual))]
    with torch.inference_mode():
        scales = models[0].calibrate(lambda: models[0](inputs_of(IMAGES)))
        sized = models[1].calibrate(lambda: models[1](larger))
        models[0].convert(scales)
        models[1].convert({key: each._replace(shape=sized[key].shape) for key, each in scales.items()})

        assert torch.equal(models[0](larger), models[1](larger))


@needs_integers
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(nn.Embedding(4, 4), id="none in it"),
        pytest.param(nn.Linear(4, 4).to(torch.float64), id="of another type"),
        pytest.param(nn.Conv2d(1, 1, 1, padding_mode="circular"), id="with padding that is no zero"),
    ],
)
def test_a_model_without_layers_for_integers_has_none(model: nn.Module) -> None:
    int8 = Int8(model)

    assert int8.calibrate(lambda: pytest.fail("there is nothing to calibrate")) == {}
    assert int8.convert({}) == 0


@needs_integers
@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf")])
def test_a_tensor_of_zeros_or_of_no_numbers_is_left_in_float32(value: float) -> None:
    int8, number = on_integers(made(lambda: nn.Linear(8, 3)), torch.full(NUMBERS, value))

    assert number == 0
    assert type(int8.whole) is nn.Linear
