"""What a user calls a model becomes the parameters of its registration."""

from pathlib import Path
from typing import Any

import pytest

from tsctl.daemon.targets import FALLBACK_BATCH_SIZE
from tsctl.python.calls import parameters_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "texts.py").write_text("def lengths(texts: list[str]) -> list[int]:\n    return [*map(len, texts)]\n")
    (tmp_path / "broken.py").write_text("def lengths(:\n")
    (tmp_path / "net.mar").write_bytes(b"PK")
    return tmp_path


@pytest.mark.parametrize(
    ("target", "parameters"),
    [
        pytest.param("https://a/net.mar", {"url": "https://a/net.mar"}, id="a URL is the daemon's to allow"),
        pytest.param("other.mar", {"url": "other.mar"}, id="a name in the store"),
        pytest.param("net.mar", {"url": "{}/net.mar", "model_name": None, "handler": None}, id="an archive"),
        pytest.param(
            "texts.py:lengths",
            {"url": "{}/texts.py:lengths", "model_name": "lengths", "fallback_batch_size": FALLBACK_BATCH_SIZE},
            id="a handler",
        ),
    ],
)
def test_the_parameters_of_a_target(folder: Path, target: str, parameters: dict[str, Any]) -> None:
    found = parameters_of(target, folder)

    assert found == parameters | {"url": parameters["url"].format(folder)}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("./nothing.py", "no file `./nothing.py`"),
        ("texts.py:length", "defines no `length`; did you mean `texts.py:lengths`"),
        ("broken.py", "broken.py"),
        (Path("gone.mar"), "no file `gone.mar`"),
    ],
)
def test_what_cannot_be_served_is_a_sentence_with_its_remedy(folder: Path, target: str | Path, message: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        parameters_of(target, folder)

    assert message in str(caught.value)
