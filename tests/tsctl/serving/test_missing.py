"""What is advised where a module is not found."""

from pathlib import Path

import pytest

from tsctl.serving.failures import PACKAGES, hint_for_import


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
