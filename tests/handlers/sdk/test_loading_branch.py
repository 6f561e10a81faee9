"""A function without a branch for loading registers; every other error of loading is one."""

from pathlib import Path

import pytest

from tests.handlers.samples import context_of, write
from tsctl.handlers.sdk.loader import load_handler


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return [len(d) for d in data]", id="iterates"),
        pytest.param("return [data[i] for i in range(len(data))]", id="asks for the length"),
        pytest.param("return [data[0]['body']]", id="takes the first"),
        pytest.param("return data.copy()", id="calls a method"),
        pytest.param("def inner():\n        return data[0]\n    return [inner()]", id="in a function within"),
        pytest.param("return list(map(lambda i: data[i], [0]))", id="in a lambda"),
        pytest.param("return helper(data)", id="in a function of the file that gets its data"),
    ],
)
def test_a_handle_that_uses_its_data_at_once_registers_with_a_note(model_dir: Path, body: str) -> None:
    helper = "def helper(rows):\n    return [len(row) for row in rows]\n\n"
    (model_dir / "handler.py").write_text(f"{helper}def handle(data, context):\n    {body}\n")
    entry = load_handler("handler.py", model_dir)

    entry.initialize(context_of(model_dir))

    [note] = entry.notes
    assert note.startswith("`handle` has no loading branch: its call without data, which TorchServe makes, raised `")
    assert "NoneType" in note


def test_so_does_one_within_a_decorator(model_dir: Path) -> None:
    source = "import torch\n\n@torch.no_grad()\ndef handle(data, context):\n    return [len(d) for d in data]\n"
    (model_dir / "handler.py").write_text(source)
    entry = load_handler("handler.py", model_dir)

    entry.initialize(context_of(model_dir))

    assert len(entry.notes) == 1


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("def handle(data, context):\n    if data is None:\n        None.x\n", id="in its loading branch"),
        pytest.param("def handle(data, context):\n    if not data:\n        len(None)\n", id="in another one"),
        pytest.param("def handle(data, context):\n    if None is data:\n        len(None)\n", id="asked backwards"),
        pytest.param("def handle(data, context):\n    return data and 1 or None.x\n", id="in an expression"),
        pytest.param(
            "def load():\n    return None.x\ndef handle(data, context):\n    load()\n", id="in another function"
        ),
        pytest.param(
            "def load(a):\n    if a is None:\n        return None.x\ndef handle(data, context):\n    load(data)\n",
            id="in the loading branch of another function",
        ),
        pytest.param("def handle(data, context):\n    raise TypeError('no weights')\n", id="another TypeError"),
        pytest.param("def handle(data, context):\n    raise ValueError('NoneType')\n", id="another error"),
        pytest.param("import json\ndef handle(data, context):\n    json.loads(data)\n", id="in a library"),
    ],
)
def test_an_error_of_loading_stands(model_dir: Path, source: str) -> None:
    (model_dir / "handler.py").write_text(source)
    entry = load_handler("handler.py", model_dir)

    with pytest.raises((TypeError, ValueError, AttributeError)):
        entry.initialize(context_of(model_dir))

    assert entry.notes == []


def test_a_handle_with_a_loading_branch_has_no_note(model_dir: Path) -> None:
    write(model_dir / "handler.py", "    def handle(data, context):\n        return data and ['x']\n")
    entry = load_handler("handler.py", model_dir)

    entry.initialize(context_of(model_dir))

    assert entry.notes == []
