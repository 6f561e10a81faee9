"""Sets of optimisations in a file of models; what `tsctl optimize` asks and says stands in transcripts/optimize.txt."""

from pathlib import Path

from tsctl.apply.file import parse


def test_a_file_of_models_may_name_them(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text("def handle(data, context):\n    return data\n")
    text = 'models:\n  net:\n    source: handler.py\n    settings: {optimize: "fold,bf16"}\n'

    (spec,) = parse(text, "f.yaml", tmp_path, None)["net"].versions.values()

    assert spec.settings["optimize"] == ["fold", "bf16"]
