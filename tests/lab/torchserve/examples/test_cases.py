"""Examples are prepared by recipes, tried with stand-ins, or left out with a reason."""

from pathlib import Path

import pytest

from tests.lab.torchserve.examples.archives import expanded
from tests.lab.torchserve.examples.cases import LEFT_OUT, PREPARED, STALE, left_out, prepared
from tests.lab.torchserve.examples.recipes import RECIPES
from tests.lab.torchserve.examples.stand_ins import STAND_INS, write_stand_ins
from tests.lab.torchserve.examples.table import Sample, its_own, request_of
from tests.lab.torchserve.verdict import Outcome


def test_each_case_names_a_recipe_and_a_stand_in_that_are_there() -> None:
    assert {each.recipe for each in PREPARED} - {""} == RECIPES.keys()
    assert {each.library for each in PREPARED} - {""} == STAND_INS.keys()


def test_a_case_is_prepared_by_its_page_and_its_name() -> None:
    bloom = prepared("examples/large_models/Huggingface_accelerate/Readme.md:45 bloom")

    assert bloom is not None and bloom.recipe == "bloom"
    assert prepared("examples/large_models/Huggingface_accelerate/llama/Readme.md:30 llama3-70b-instruct") is None


def test_a_command_that_packs_a_file_of_nowhere_is_refused_by_torchserve_too() -> None:
    name = "examples/large_models/tp_llama/README.md:107 llama"
    row = left_out(name, ("llama-handler.py",))

    assert row is not None and row.outcome is Outcome.NEITHER and "`llama-handler.py`" in row.why
    assert left_out(name, ("model_args.json",)) is None


def test_a_case_that_is_not_tried_has_a_reason() -> None:
    row = left_out("examples/text_to_speech_synthesizer/WaveGlow/create_mar.sh:17 waveglow_synthesizer", ())

    assert row is not None and row.outcome is Outcome.UNJUDGED and "GPU" in row.why
    assert all(each.why for each in LEFT_OUT) and all(each.file for each in STALE)
    assert left_out("examples/image_classifier/mnist/README.md:29 mnist", ()) is None


def test_stand_ins_are_written_where_the_library_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "installed" / "mii").mkdir(parents=True)

    missing = write_stand_ins(tmp_path / "written", tmp_path / "installed")

    assert "mii" not in missing and not (tmp_path / "written" / "mii").exists()
    assert "llama_cpp" in missing and (tmp_path / "written" / "llama_cpp.py").is_file()


@pytest.mark.parametrize("library", STAND_INS)
def test_a_stand_in_is_python(library: str) -> None:
    for name, text in STAND_INS[library].items():
        compile(text, name, "exec")


def test_variables_that_a_script_assigns_are_put_into_its_command(tmp_path: Path) -> None:
    script = tmp_path / "create_mar.sh"
    script.write_text('MODELSZIP="models.zip"\nfile_name=$(ls build)\n')

    assert expanded(script, "$MODELSZIP") == "models.zip"
    assert expanded(script, "build/$file_name") == "build/$file_name"


@pytest.mark.parametrize(
    ("form", "headers"),
    [("a cat", {"Content_Type": "text/plain"}), ('{"a": 1}', {"Content_Type": "application/json"})],
)
def test_an_input_may_be_a_text_of_the_table(form: str, headers: dict[str, str]) -> None:
    assert request_of(Sample("", "", form), Path("nowhere")) == (form.encode(), headers)


def test_a_failure_of_the_example_itself_is_known_by_its_message() -> None:
    assert "traced model" in its_own("AttributeError: 'RecursiveScriptModule' object has no attribute 'generate'")
    assert its_own("AttributeError: x") == ""
