"""A model that does not load is told in at most five lines, with the line of the user's file."""

from pathlib import Path

import pytest

from tsctl.errors import CliError
from tsctl.serving.failures import explain, explained

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
