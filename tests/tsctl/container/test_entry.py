"""The words of a container, read as TorchServe's entry point reads them."""

import json

from tests.kit.said import said_in
from tsctl.container.__main__ import read_words


@said_in("words.txt")
def test_words(given: str) -> str:
    program, rest = read_words(json.loads(given))
    return f"{program.name} {json.dumps(rest)}"
