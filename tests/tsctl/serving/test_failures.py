"""A model that does not load is told in at most five lines, with the line of the user's file."""

from pathlib import Path

import pytest

from tsctl.errors import CliError
from tsctl.serving.failures import PACKAGES, explain, explained, hint_for_import

FAILED = "Failed to start workers for model m version: 1.0: "


def traceback(*frames: str, error: str) -> str:
    return "\n".join(["Traceback (most recent call last):", *frames, error])


@pytest.mark.parametrize(
    "frame",
    [
        '  File "/home/me/h.py", line 3, in <module>',
        '  File "h.py", line 3, in <module>',
        "  h.py, line 3, in <module>",
    ],
    ids=["as Python prints it", "without a folder", "in words"],
)
def test_a_single_frame_becomes_file_line_and_text(frame: str) -> None:
    failure = explain(
        FAILED + "ModuleNotFoundError: No module named 'numppy'",
        traceback(frame, "    import numppy", error="ModuleNotFoundError: No module named 'numppy'"),
    )

    assert failure.message == "h.py, line 3: ModuleNotFoundError: No module named 'numppy'"
    assert failure.details == "    import numppy"
    assert failure.hint == "did you mean `numpy`?"


def test_a_syntax_error_of_an_imported_file_is_that_files() -> None:
    failure = explain(
        FAILED + "SyntaxError: invalid syntax (words.py, line 1)",
        '  File "/home/me/words.py", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax',
    )

    assert failure == ("words.py, line 1: SyntaxError: invalid syntax", "", "    x = = 1")


def test_of_a_longer_traceback_the_calls_stay_in_one_line() -> None:
    details = traceback(
        '  File "/home/me/h.py", line 3, in load', "    read()", '  File "/home/me/files.py", line 9, in read',
        "    open(name)", error="FileNotFoundError: [Errno 2] No such file: 'vocab.json'",
    )  # fmt: skip

    failure = explain(FAILED + "FileNotFoundError: …", details, target="h.py")

    assert failure.message == "files.py, line 9: FileNotFoundError: [Errno 2] No such file: 'vocab.json'"
    assert failure.details == "    open(name)\n    load (h.py:3) → read (files.py:9)"
    assert failure.hint == "`tsctl check h.py` shows the whole traceback"


def test_of_many_calls_the_first_and_the_last_stay() -> None:
    frames = [line for number in range(1, 20) for line in (f'  File "h.py", line {number}, in f{number}', "    x()")]

    failure = explain(FAILED + "ValueError: …", traceback(*frames, error="ValueError: no"), target="h.py")

    calls = failure.details.splitlines()[1]
    assert calls == "    f1 (h.py:1) → … → f16 (h.py:16) → f17 (h.py:17) → f18 (h.py:18) → f19 (h.py:19)"


def test_the_next_line_of_an_errors_text_is_told_and_no_more() -> None:
    error = 'RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s): "a".\n\tUnexpected key(s): "b".'
    details = traceback('  File "h.py", line 3, in load', "    net.load(x)", '  File "torch/m.py", line 9, in load',
                        "    raise", error=error)  # fmt: skip

    failure = explain(FAILED + "RuntimeError: …", details, target="h.py")

    assert failure.message == "m.py, line 9: RuntimeError: Error(s) in loading state_dict for Net:"
    assert failure.details.endswith('\n    Missing key(s): "a".')
    assert len(failure.details.splitlines()) + 2 <= 5


def test_a_name_that_is_taken_is_refused_with_both_ways_out_and_a_hint_that_is_there_stays() -> None:
    hinted = CliError("no file `h.py`", "did you mean `g.py`?")

    told = "Model m is already registered: version 1.0, from m.mar."

    refused = f"{told} Use another model_name, or unregister it first: `tsctl unregister m`."
    error = explained(CliError(refused, kind="ConflictStatusException"), "m")

    assert (error.message, error.hint) == (told, "choose a name with `--name`, or `tsctl unregister m`")
    assert explained(hinted, "m") is hinted


def test_a_model_whose_own_error_is_worded_like_that_keeps_its_line() -> None:
    own = "KeyError: 'ResNet is already registered in models'"
    details = traceback('  File "h.py", line 3, in load', "    models.add(ResNet)", error=own)

    error = explained(CliError(FAILED + own, details=details, kind="InternalServerException"), "m")

    assert error.message == f"h.py, line 3: {own}"


DEEP = traceback(
    '  File "h.py", line 6, in <module>', "    WORDS = json.loads(TEXT)",
    '  File "json/__init__.py", line 346, in loads', "    return _default_decoder.decode(s)",
    error="json.decoder.JSONDecodeError: Expecting value",
)  # fmt: skip


def test_the_line_is_the_last_one_of_the_users_own_files(tmp_path: Path) -> None:
    (tmp_path / "h.py").touch()

    failure = explain(FAILED + "JSONDecodeError: …", DEEP, tmp_path)

    assert failure.message == "h.py, line 6: json.decoder.JSONDecodeError: Expecting value"
    assert failure.details == "    WORDS = json.loads(TEXT)\n    <module> (h.py:6) → loads (__init__.py:346)"


def test_an_import_that_fails_in_an_imported_file_is_told_in_two_lines(tmp_path: Path) -> None:
    for name in ("h.py", "words.py"):
        (tmp_path / name).touch()
    details = traceback(
        '  File "h.py", line 1, in <module>', "    import words", '  File "words.py", line 2, in <module>',
        "    import numppy", error="ModuleNotFoundError: No module named 'numppy'",
    )  # fmt: skip

    failure = explain(FAILED + "ModuleNotFoundError: …", details, tmp_path)

    assert failure.message == "words.py, line 2: ModuleNotFoundError: No module named 'numppy'"
    assert failure.details == "    import numppy"


OURS = "h.py needs a function `handle`"


@pytest.mark.parametrize(
    ("message", "details", "expected"),
    [
        pytest.param(f"{FAILED}HandlerError: {OURS}", "", OURS, id="ours"),
        pytest.param(
            f"{FAILED}HandlerError: {OURS}", f"tsctl.handlers.sdk.errors.HandlerError: {OURS}", OURS, id="once"
        ),
        pytest.param("Disk full.", "", "Disk full.", id="another answer"),
    ],
)
def test_a_failure_without_a_frame_is_its_reason(message: str, details: str, expected: str) -> None:
    assert explain(message, details)[::2] == (expected, "")


def hint(name: str, folder: Path | None = None) -> str:
    return hint_for_import(f"ModuleNotFoundError: No module named '{name}'", folder)


@pytest.mark.parametrize("name", ["surely_not_installed", "utils", "model", "config", "src"])
def test_a_name_that_is_not_known_is_never_proposed_to_pip(name: str, tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        assert hint(name, folder).startswith(f"is `{name}` yours? Put its file beside the handler")
        assert "pip" not in hint(name, folder)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cv2", " -m pip install opencv-python-headless`"),
        ("PIL", " -m pip install pillow`"),
        ("sklearn", " -m pip install scikit-learn`"),
        ("numpy", " -m pip install numpy`"),
        ("magika", " -m pip install magika`"),
        pytest.param("numppy", "did you mean `numpy`?", id="nearly known"),
        pytest.param("helprs", "did you mean `helpers`, which is beside it?", id="nearly a file beside it"),
        pytest.param("shop", "`shop` is the folder of these files: serve `shop.MODULE:FUNCTION`", id="its own package"),
    ],
)
def test_a_name_that_is_known_or_nearly(name: str, told: str, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "helpers.py").touch()

    assert told in hint(name, folder)


@pytest.mark.parametrize("place", [".", "lib"], ids=["above", "below"])
@pytest.mark.parametrize("file", ["{}.py", "{}/__init__.py"])
@pytest.mark.parametrize("name", ["helpers", "yaml"])
def test_a_file_of_the_users_own_is_named(place: str, file: str, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    own = (tmp_path if place == "." else folder / place) / file.format(name)
    folder.mkdir()
    own.parent.mkdir(parents=True, exist_ok=True)
    own.touch()

    assert hint(name, folder) == f"`{own}` is not beside the handler: move it there, or put its folder into PYTHONPATH"


@pytest.mark.parametrize(
    ("error", "start"),
    [
        ("No module named 'torch.nothing'", "`torch` was found, and has no module `torch.nothing`"),
        ("No module named 'yaml.x'; 'yaml' is not a package", "a file `yaml.py` of yours hides the package `yaml`"),
        ("cannot import name 'x' from 'y'", ""),
        ("attempted relative import with no known parent package", "a file served alone is in no package: write"),
        ("attempted relative import beyond top-level package", "a file served alone is in no package: write"),
    ],
)
def test_a_part_of_a_module_is_not_its_package(error: str, start: str) -> None:
    told = hint_for_import(f"ModuleNotFoundError: {error}", None)

    assert told.startswith(start) and "pip" not in told
    assert told or not start


def test_no_known_package_is_a_deprecated_one() -> None:
    assert not {"sklearn", "opencv", "PIL", "bs4", "skimage", "fitz", "docx", "dotenv", "jwt"} & set(PACKAGES.values())


def test_a_relative_import_may_stay_where_the_package_is_served(tmp_path: Path) -> None:
    error = "ImportError: attempted relative import with no known parent package"

    assert hint_for_import(error, tmp_path / "shop").endswith(f"serve `shop.MODULE:FUNCTION` from `{tmp_path}`")
