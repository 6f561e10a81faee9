"""A handler tested as TorchServe's users test theirs: with MockContext."""

from pathlib import Path

import pytest
import torch

from tests.handlers.samples import write
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.envelopes.json import BodyEnvelope, JSONEnvelope
from tsctl.handlers.torchserve.mock_context import MockContext

NET = """
    import torch
    class Net(torch.nn.Module):
        def forward(self, x):
            return x * 2
"""


def test_a_handler_is_initialized_and_answers_with_one(model_dir: Path) -> None:
    write(model_dir / "net.py", NET)
    context = MockContext(model_pt_file=None, model_dir=str(model_dir), model_file="net.py", model_name="net")
    handler = BaseHandler()

    handler.initialize(context)  # type: ignore[arg-type]
    answers = handler.handle([{"data": [1.0]}, {"data": [2.0]}], context)  # type: ignore[arg-type]

    assert answers == [[2.0], [4.0]]


def test_its_manifest_holds_what_it_was_given() -> None:
    assert MockContext().manifest == {"model": {"serializedFile": "model.pt", "modelFile": "model.py"}}
    assert MockContext(model_pt_file="", model_file=None).manifest == {"model": {}}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_names_none() -> None:
    assert MockContext(gpu_id="0").system_properties == {"model_dir": "ts/torch_handler/unit_tests/models/tmp"}


def test_it_reads_a_yaml_file_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "model-config.yaml").write_text("handler:\n  profile: true\n")

    context = MockContext(model_dir=str(tmp_path), model_yaml_config_file="model-config.yaml")

    assert context.model_yaml_config == {"handler": {"profile": True}}


def test_only_rows_after_the_first_ask_for_explanations() -> None:
    context = MockContext()
    before = context.get_request_header(1, "explain")
    context.explain = True

    assert (before, context.get_request_header(0, "explain"), context.get_request_header(1, "explain")) == (
        False,
        False,
        True,
    )


def test_a_handler_in_an_envelope_answers_without_requests() -> None:
    batch = [{"body": {"instances": [1, 2]}}, {"body": {"instances": [3]}}]
    envelope = JSONEnvelope(lambda rows, _: [row * 2 for row in rows])

    assert envelope.handle(batch, MockContext()) == [  # type: ignore[arg-type]
        '{"predictions": [2, 4]}', '{"predictions": [6]}',
    ]  # fmt: skip
    assert BodyEnvelope(lambda rows, _: rows).handle([{"body": 1}], MockContext()) == [1]  # type: ignore[arg-type]
