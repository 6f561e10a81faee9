"""A word of a unit file is read by systemd as it was."""

import pytest

from tsctl.service.service import command_line, path, word


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("--model-store=/srv/models", "--model-store=/srv/models", id="a plain word"),
        pytest.param("/srv/my models", '"/srv/my models"', id="a space"),
        pytest.param("100%", "100%%", id="no specifier"),
        pytest.param("$HOME", '"$$HOME"', id="no variable"),
        pytest.param('say "a\\b"', '"say \\"a\\\\b\\""', id="quotes and backslashes"),
        pytest.param("two\nlines", '"two\\nlines"', id="a line break"),
        pytest.param("a;b", '"a;b"', id="no second command"),
        pytest.param("", '""', id="an empty word"),
    ],
)
def test_word(text: str, written: str) -> None:
    assert word(text) == written


def test_a_command_line_has_an_argument_a_line_and_a_path_no_variables_to_keep() -> None:
    line = command_line(["/opt/my env/tsctl", "run"], ["--a", "--b"])

    assert line == '"/opt/my env/tsctl" run \\\n    --a \\\n    --b'
    assert path("/srv/a$b %c") == '"/srv/a$b %%c"'
