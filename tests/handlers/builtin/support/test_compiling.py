"""torch.compile, where the model's configuration asks for it."""

import logging
from typing import Any

import pytest
import torch

from tsctl.handlers.builtin.support.compiling import check_valid_pt2_backend, compile_options, compiled


@pytest.mark.parametrize(
    ("config", "options"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"pt2": {"compile": {"enable": True}}}, {}, id="enabled, with torch's own defaults"),
        pytest.param(
            {"pt2": {"compile": {"enable": True, "backend": "inductor", "mode": "default"}}},
            {"backend": "inductor", "mode": "default"},
            id="with options",
        ),
        pytest.param({"pt2": {"compile": {"enable": False, "backend": "inductor"}}}, None, id="disabled"),
        pytest.param({"pt2": {"compile": {"backend": "inductor"}}}, None, id="not said to be enabled"),
        pytest.param({"pt2": {"compile": None}}, None, id="an empty mapping"),
        pytest.param({"pt2": {"export": {"aot_compile": True}}}, None, id="exported"),
        pytest.param({"pt2": "inductor"}, {"backend": "inductor"}, id="the oldest form"),
        pytest.param({"pt2": {"backend": "eager"}}, {"backend": "eager"}, id="the older form"),
        pytest.param({"pt2": {}}, None, id="an empty older form"),
    ],
)
def test_compile_options(config: dict[str, Any], options: dict[str, Any] | None) -> None:
    before = repr(config)

    assert compile_options(config) == options
    assert repr(config) == before
    with pytest.raises(ValueError, match=r"`pt2` in model-config\.yaml should be a mapping or a string"):
        compile_options({"pt2": ["inductor"]})


@pytest.mark.parametrize(("backend", "valid"), [("inductor", True), ("eager", True), ("magic", False)])
def test_check_valid_pt2_backend(backend: str, valid: bool, caplog: pytest.LogCaptureFixture) -> None:
    assert check_valid_pt2_backend(backend) is valid
    assert ("magic is not a backend" in caplog.text) is not valid
    model = torch.nn.Identity()
    assert compiled(model, {}) is compiled(model, {"pt2": "magic"}) is model


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_model_computes_the_same() -> None:
    model = torch.nn.Linear(2, 2)

    found = compiled(model, {"pt2": {"compile": {"enable": True, "backend": "eager"}}})

    assert found is not model
    assert torch.equal(found(torch.ones(1, 2)), model(torch.ones(1, 2)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_backend_that_is_not_installed_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    model = torch.nn.Linear(2, 2)

    with caplog.at_level(logging.WARNING):
        found = compiled(model, {"pt2": {"compile": {"enable": True, "backend": "fx2trt"}}})

    assert found is model
    assert "the model could not be compiled with {'backend': 'fx2trt'}, and is served as it is" in caplog.text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_model_whose_code_generation_fails_is_run_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._dynamo

    def failing(graph: Any, inputs: Any) -> Any:
        raise RuntimeError("no compiler")

    torch._dynamo.reset()
    monkeypatch.setattr("tsctl.handlers.builtin.support.compiling.check_valid_pt2_backend", lambda backend: True)
    model = torch.nn.Linear(2, 2)

    found = compiled(model, {"pt2": {"backend": failing}})

    assert torch.equal(found(torch.ones(1, 2)), model(torch.ones(1, 2)))


def test_the_options_of_a_compiled_model_are_in_the_log_in_torchserves_words(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        compiled(torch.nn.Linear(1, 1), {"pt2": {"compile": {"enable": True, "backend": "eager", "dynamic": True}}})

    assert "Compiled model with backend eager, dynamic True" in caplog.text
