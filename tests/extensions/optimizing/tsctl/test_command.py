"""Sets of optimisations in a file of models; what `tsctl optimize` asks and says stands in transcripts/optimize.txt."""

from pathlib import Path

from tests.tsctl.conftest import Invoke
from tsctl.apply.file import parse


def test_a_file_of_models_may_name_them(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text("def handle(data, context):\n    return data\n")
    text = 'models:\n  net:\n    source: handler.py\n    settings: {optimize: "fold,bf16"}\n'

    (spec,) = parse(text, "f.yaml", tmp_path, None)["net"].versions.values()

    assert spec.settings["optimize"] == ["fold", "bf16"]


def test_the_earlier_spelling_of_its_input_is_accepted_and_not_shown(invoke: Invoke) -> None:
    assert "No such option" not in invoke("optimize", "--input", "x").stderr
    assert "--input" not in invoke("optimize", "--help", "all").stdout
