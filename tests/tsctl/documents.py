"""Documents as the daemon answers them, of tests/tsctl/transcripts, and what people see of one."""

from typing import Any

import pytest

from tests.tsctl.transcripts import loaded

DESCRIBED: dict[str, Any] = loaded("described")


def model(name: str, version: str, *, default: bool = True, state: str = "ready") -> dict[str, Any]:
    """Make one of the models of `GET /tsctl/status`."""
    return loaded("model") | {"name": name, "version": version, "default": default, "state": state}


def described(capsys: pytest.CaptureFixture[str], document: dict[str, Any]) -> list[str]:
    """Return the output for people, with single spaces."""
    from tsctl.commands.describe import show

    show(document)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
