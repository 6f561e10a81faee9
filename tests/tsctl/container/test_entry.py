"""The words of a container, read as TorchServe's entry point reads them."""

import pytest

from tsctl.container.__main__ import Program, read_words


@pytest.mark.parametrize(
    ("words", "program", "rest"),
    [
        pytest.param([], Program.SERVE, [], id="no word is the server"),
        pytest.param(["serve"], Program.SERVE, [], id="serve"),
        pytest.param(["serve", "--grace", "5"], Program.SERVE, ["--grace", "5"], id="serve may have flags"),
        pytest.param(["torchserve", "--start"], Program.TORCHSERVE, ["--start"], id="torchserve"),
        pytest.param(["/usr/local/bin/torchserve"], Program.TORCHSERVE, [], id="torchserve by its path"),
        pytest.param(["torchserve --start --models ALL"], Program.TORCHSERVE, ["--start", "--models", "ALL"],
                     id="torchserve and its flags in one word"),
        pytest.param(["python", "-c", "x y"], Program.OTHER, ["python", "-c", "x y"], id="another program"),
        pytest.param(["torchserve --start; sleep 1"], Program.OTHER, ["/bin/sh", "-c", "torchserve --start; sleep 1"],
                     id="a line for a shell"),
        pytest.param(["echo $HOME"], Program.OTHER, ["/bin/sh", "-c", "echo $HOME"], id="another program in one word"),
        pytest.param(["torchserve 'open"], Program.OTHER, ["/bin/sh", "-c", "torchserve 'open"], id="an open quote"),
        pytest.param(["  "], Program.OTHER, ["/bin/sh", "-c", "  "], id="an empty line"),
    ],
)  # fmt: skip
def test_words(words: list[str], program: Program, rest: list[str]) -> None:
    assert read_words(words) == (program, rest)
