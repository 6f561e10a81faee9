"""A word of a unit file is read by systemd as it was."""

import json

from tests.kit.said import said_in
from tsctl.service.service import command_line, path, word


@said_in("words.txt")
def test_word(given: str) -> str:
    return word(json.loads(given))


def test_a_command_line_has_an_argument_a_line_and_a_path_no_variables_to_keep() -> None:
    line = command_line(["/opt/my env/tsctl", "run"], ["--a", "--b"])

    assert line == '"/opt/my env/tsctl" run \\\n    --a \\\n    --b'
    assert path("/srv/a$b %c") == '"/srv/a$b %%c"'
