"""Which model a path names, before its route is asked."""

import pytest

from tsctl.daemon.api.inference.paths import model_named


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (["predictions", "m", "1.0", "a"], "m"), (["explanations", "m"], "m"), (["ready", "m"], "m"),
        (["v1", "models", "m:predict"], "m"), (["v1", "models", "a:b:explain"], "a:b"), (["v1", "models", "m"], "m"),
        (["v2", "models", "m", "versions", "1", "infer"], "m"), (["models", "m", "invoke"], "m"),
        (["m", "predict"], "m"), (["m", "1.0", "predict"], "m"),
        (["invocations"], None), (["metrics"], None), ([], None),
    ],
)  # fmt: skip
def test_the_model_that_a_path_names(path: list[str], name: str | None) -> None:
    assert model_named(path) == name
