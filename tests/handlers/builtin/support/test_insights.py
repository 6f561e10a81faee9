"""Explanations: captum is imported when one is asked for, and only then."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torchvision.transforms.functional import to_tensor

from tests.handlers.device import on_device
from tests.handlers.images import encoded
from tests.handlers.samples import context_of
from tsctl.handlers import wire
from tsctl.handlers.builtin.support.insights import captum_attr, target_of
from tsctl.handlers.builtin.vision import VisionHandler
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.sdk.loader import EntryPoint


class Channels(VisionHandler):
    """Scores an image by the sums of its three channels."""

    image_processing = staticmethod(to_tensor)

    def __init__(self) -> None:
        super().__init__()
        self.model = lambda images: images.sum(dim=(2, 3))


def explain(handler: VisionHandler, *targets: bytes) -> list[wire.Answer]:
    """Explain a red image of one pixel for each target."""
    red = encoded(Image.new("RGB", (1, 1), "red"))
    rows = [
        wire.Row(f"r{index}", [("explain", "True")], [("data", "", red), ("target", "", target)])
        for index, target in enumerate(targets)
    ]
    on_device(handler)
    return Runtime(EntryPoint(handler, handler.handle), context_of(Path("/"))).run(rows)


@pytest.mark.slow
def test_integrated_gradients_say_which_pixels_spoke_for_each_rows_own_target() -> None:
    pytest.importorskip("captum")

    red, green = (json.loads(answer.body) for answer in explain(Channels(), b"0", b"1"))

    assert torch.tensor(red).shape == (3, 1, 1)
    assert torch.tensor(red).flatten().tolist() == pytest.approx([1, 0, 0], abs=1e-5)
    assert torch.tensor(green).flatten().tolist() == pytest.approx([0, 0, 0], abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("target", [b"3", b"-4", b"9" * 30])
def test_an_explanation_of_a_class_that_the_model_lacks_is_400(target: bytes) -> None:
    pytest.importorskip("captum")

    (answer,) = explain(Channels(), target)

    assert answer.status == 400
    assert f"The request's `target` {int(target)} is no class of the model: " in answer.body.decode()


def test_a_json_object_has_its_target_beside_its_input() -> None:
    class Telling(VisionHandler):
        def get_insights(self, tensor_data: torch.Tensor, raw_data: Any, target: Any = 0) -> list[Any]:
            return [target]

    handler = Telling()
    bodies = [{"data": [1], "target": 3}, {"body": [1], "target": "2"}, {"data": [1]}, {"data": [1], "target": "x"}]
    rows = [
        wire.Row(str(index), [("explain", "True")], [("body", "application/json", json.dumps(body).encode())])
        for index, body in enumerate(bodies)
    ]

    answers = Runtime(EntryPoint(handler, handler.handle), context_of(Path("/"))).run(rows)

    assert [answer.body for answer in answers[:3]] == [b"3", b"2", b"0"]
    assert answers[3].status == 400


def test_without_captum_the_client_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "captum"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])

    (answer,) = explain(Channels(), b"0")

    assert answer.status == 501
    assert answer.body.endswith(b"Install it with: pip install 'tsctl[captum]'")


def test_a_fault_within_captum_is_not_taken_for_its_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    monkeypatch.setattr("importlib.import_module", broken)

    with pytest.raises(ModuleNotFoundError, match="numpy"):
        captum_attr()


@pytest.mark.heavy
@pytest.mark.slow
def test_a_handler_is_imported_without_captum() -> None:
    program = "import sys; from tsctl.handlers.builtin import text_classifier, vision; print('captum' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("value", "target"),
    [
        pytest.param(None, 0, id="none is class 0"),
        pytest.param("", 0, id="an empty text is class 0"),
        pytest.param(3, 3, id="a number"),
        pytest.param("3", 3, id="a text"),
        pytest.param(bytearray(b"3"), 3, id="bytes, as a form field comes"),
        pytest.param([1, 2], (1, 2), id="a place in the output"),
    ],
)
def test_a_target_is_a_class(value: object, target: object) -> None:
    assert target_of(value) == target


@pytest.mark.parametrize("value", ["cat", [], ["a"], {}, b"1.5", 1e999])
def test_a_target_that_is_no_class_is_unreadable(value: object) -> None:
    with pytest.raises(UnreadablePayload, match="should be the number of a class"):
        target_of(value)
