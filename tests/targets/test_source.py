"""Python files are read as text: nothing in them runs."""

from pathlib import Path

import pytest

from tests.kit.archives import write_files
from tsctl.daemon.targets import TargetError, check_syntax, checked_target, local_files, top_imports


def names(files: list[Path], root: Path) -> set[str]:
    return {str(file.relative_to(root)) for file in files}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param(b"x = 1\ny = (\n", "h.py, line 2: SyntaxError: '(' was never closed\n    y = (", id="a bracket"),
        pytest.param(b"if x:\nprint()\n", "h.py, line 2: IndentationError: expected an indented block", id="indent"),
        pytest.param(b"\xff\xfe\n", "h.py", id="no UTF-8"),
        pytest.param(b"x = 1\0", "h.py", id="a zero byte"),
    ],
)
def test_a_syntax_error_is_told_with_file_and_line(source: bytes, message: str, tmp_path: Path) -> None:
    write_files(tmp_path, {"h.py": source})

    with pytest.raises(TargetError) as caught:
        checked_target("./h.py", tmp_path)

    assert caught.value.message.startswith(message)
    assert str(tmp_path) not in caught.value.message


def test_the_files_that_a_handler_imports_from_its_folder(tmp_path: Path) -> None:
    files = {
        "h.py": b"import json, clean\nfrom app import net\ndef f():\n    import late\n",
        "clean.py": b"import words\n",
        "words.py": b"import clean\n",
        "late.py": b"",
        "app/__init__.py": b"",
        "app/net.py": b"from . import parts\nfrom .. import outside\n",
        "app/parts.py": b"",
        "unused.py": b"",
        "json/notes.txt": b"",
    }
    write_files(tmp_path, files)

    found = local_files(tmp_path / "h.py")

    assert found[0] == tmp_path / "h.py"
    assert names(found, tmp_path) == {
        "h.py", "clean.py", "words.py", "late.py", "app/__init__.py", "app/net.py", "app/parts.py",
    }  # fmt: skip


def test_a_file_that_is_not_python_imports_nothing(tmp_path: Path) -> None:
    write_files(tmp_path, {"h.py": b"import (\n", "other.py": b""})

    assert local_files(tmp_path / "h.py") == [tmp_path / "h.py"]
    assert top_imports([tmp_path / "h.py"]) == set()
    check_syntax(
        write_files(tmp_path, {"h.py": b"raise SystemExit\nimport a.b as c\nfrom d.e import f\nfrom . import g\n"})
        / "h.py"
    )
    assert top_imports([tmp_path / "h.py"]) == {"a", "d"}, "nothing is run"
