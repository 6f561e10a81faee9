"""What built-in handlers declare, and what model-config.yaml may declare of them."""

import pytest

from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.text_classifier import TextClassifier
from tsctl.handlers.names import BUILT_IN
from tsctl.handlers.sdk.built_in import declaration_inherited, declaration_of, declaration_under
from tsctl.handlers.sdk.errors import HandlerError

BYTES = {"datatype": "BYTES", "shape": [1]}
FLOATS = {"datatype": "FP32", "shape": [-1]}
UNDECLARED = {"vision_handler", "text_handler", "vllm_handler"}  # two bases, and one whose input is a protocol's


@pytest.mark.parametrize("handler", sorted(BUILT_IN.keys() - UNDECLARED))
def test_a_built_in_handler_has_one_input_called_data(handler: str) -> None:
    declared = declaration_of(handler)

    assert declared is not None and declared.built_in
    assert [each.name for each in declared.inputs] == ["data"]


@pytest.mark.parametrize("handler", sorted(UNDECLARED | {"mine"}))
def test_other_handlers_declare_nothing(handler: str) -> None:
    assert declaration_of(handler) is None


@pytest.mark.parametrize("handler", ["image_classifier", "base_handler"])
def test_numbers_that_the_archive_declares_reach_the_handler_as_arrays(handler: str) -> None:
    declared = declaration_of(handler)
    assert declared is not None

    assert declaration_under(declared, [{"name": "data", **FLOATS}]) is None


def test_the_archive_may_name_the_input_as_the_handler_finds_it_and_declare_others_beside_it() -> None:
    declared = declaration_of("image_classifier")
    assert declared is not None

    under = declaration_under(declared, [{"name": "body", **BYTES}, {"name": "target", **BYTES}])

    assert under is not None
    assert [(each.name, each.kind) for each in under.inputs] == [("body", "image"), ("target", "bytes")]


@pytest.mark.parametrize(
    ("handler", "tensor", "says"),
    [
        ("image_classifier", {"name": "picture", **BYTES}, "`picture`, and the built-in handler takes `data`"),
        ("text_classifier", {"name": "data", **FLOATS}, "`data` as FP32, and the built-in handler's input is BYTES of"),
        ("base_handler", {"name": "data", **BYTES}, "as BYTES, and the built-in handler's input is a datatype of num"),
    ],
)  # fmt: skip
def test_a_contradiction_names_both_sides_and_the_remedy(handler: str, tensor: dict[str, object], says: str) -> None:
    declared = declaration_of(handler)
    assert declared is not None

    with pytest.raises(HandlerError, match="or remove `inputs`") as caught:
        declaration_under(declared, [tensor])

    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("base", "members", "kind", "batches"),
    [
        pytest.param(ImageClassifier, {"topk": 3}, "image", True, id="with another number of classes"),
        pytest.param(ImageClassifier, {"postprocess": None}, "image", False, id="with an answer of its own"),
        pytest.param(ImageClassifier, {"preprocess": None}, None, False, id="that reads requests itself"),
        pytest.param(TextClassifier, {}, "text", True, id="of texts"),
        pytest.param(object, {}, None, False, id="of nothing of ours"),
    ],
)
def test_a_subclass_takes_what_its_base_does_as_far_as_it_leaves_the_steps_as_they_are(
    base: type, members: dict[str, object], kind: str | None, batches: bool
) -> None:
    declared = declaration_inherited(type("Mine", (base,), members))

    assert (declared and declared.inputs[0].kind, declared is not None and declared.batches) == (kind, batches)
