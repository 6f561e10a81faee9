"""`tsctl rollback` of models that are files: what comes back, and what cannot."""

from typing import Any

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon

FILE = "/srv/my models/scorer.py"


def version(**facts: Any) -> dict[str, Any]:
    """Return a version of the document of registrations, served in place."""
    return {
        "name": "scorer", "version": "1.0", "default": True, "url": FILE, "handler": None, "sha256": None,
        "settings": {}, "workers": {"min": 1, "max": 1}, "state": "ready", "ephemeral": False, "rewritten": False,
        "fallbackBatchSize": 8,
    } | facts  # fmt: skip


def serve(daemon: FakeDaemon, now: dict[str, Any], *earlier: dict[str, Any]) -> None:
    before = {"scorer": {"time": 1000.0, "route": None, "versions": list(earlier)}} if earlier else {}
    daemon.answer("GET /tsctl/status", {"modelStore": None})
    daemon.answer("GET /tsctl/registrations", {"versions": [now], "earlier": before, "routes": {}})


def test_a_file_that_was_edited_cannot_come_back(invoke: Invoke, daemon: FakeDaemon) -> None:
    serve(daemon, version())

    result = invoke("rollback", "scorer")

    assert result.exit_code == 1
    assert f"no earlier state of `scorer` is kept: `{FILE}` is served where it is" in result.stderr
    assert "register it again as before, with `--replace`" in " ".join(result.stderr.split())


def test_an_archive_without_an_earlier_state_is_no_file(invoke: Invoke, daemon: FakeDaemon) -> None:
    serve(daemon, version(url="/srv/scorer.mar", sha256="0" * 64))

    result = invoke("rollback", "scorer")

    assert result.exit_code == 1 and "served where it is" not in result.stderr
    assert "each change keeps the one before" in result.stderr


def test_the_settings_of_a_file_come_back_and_the_rest_is_told(invoke: Invoke, daemon: FakeDaemon) -> None:
    serve(daemon, version(settings={"batchSize": 4}), version(workers=None))

    result = invoke("rollback", "scorer", "--dry-run")

    assert result.exit_code == 0 and "batch size 4 → not set" in result.stdout
    assert "versions and settings come back, not what was in the file before" in " ".join(result.stderr.split())
