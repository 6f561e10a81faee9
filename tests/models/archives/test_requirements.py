"""An environment is named by the requirements that were installed in it."""

from pathlib import Path

import pytest

from tsctl.daemon.core.errors import InvalidModel, RequirementsFailed
from tsctl.daemon.models.archives import requirements


def test_long_requirements_are_refused_before_they_are_hashed(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes(b"#" * (256 * 1024 + 1))

    with pytest.raises(InvalidModel, match=r"`requirements\.txt` has more than 256 KiB"):
        requirements.kept_python(tmp_path / "requirements.txt", tmp_path)


def test_requirements_that_change_while_they_are_installed_leave_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("numpy\n")

    def pip(command: list[str], directory: Path | None = None) -> str:
        if "install" in command:
            file.write_text("scipy\n")
        return ""

    monkeypatch.setattr(requirements, "_run", pip)
    monkeypatch.setattr(requirements, "_see_ours", lambda python: python.parent.mkdir(parents=True))

    with pytest.raises(RequirementsFailed, match="requirements of model m were changed while they were installed"):
        requirements.environment_python(file, tmp_path / "environments", "m")
    assert list((tmp_path / "environments").iterdir()) == []

    python = requirements.environment_python(file, tmp_path / "environments", "m")
    assert requirements.kept_python(file, tmp_path / "environments") == python
