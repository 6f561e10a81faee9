"""`tsctl apply`, `export` and `rollback` on a real daemon: what a file says is served, once and for all."""

import json
from typing import Any

import pytest
import yaml

from tests.e2e.load import Load
from tests.e2e.served import Served


def write(served: Served, models: dict[str, Any]) -> str:
    (served.folder / "models.yaml").write_text(yaml.safe_dump({"models": models}))
    return "models.yaml"


def changes(served: Served, *arguments: str) -> list[str]:
    document = json.loads(served.tsctl(*arguments, "--json"))
    return [f"{each['change']} {each['model']} {each['version']}" for each in document["changes"]]


def answer(served: Served, model: str) -> str:
    return served.ask(f"/predictions/{model}", b"x").body.decode()


@pytest.mark.thin
def test_an_export_that_is_applied_changes_nothing_and_brings_everything_back(served: Served) -> None:
    (served.folder / "own.py").write_text("def handle(data, context):\n    return [b'own'] * len(data)\n")
    served.tsctl("register", served.pack_told("1", "a"), "--batch-size", "4", "--max-memory", "2GiB", "--cpus", "0")
    served.tsctl("register", served.pack_told("2", "a", version="2.0"), "--workers", "0")
    served.tsctl("scale", "a/1.0", "2")
    served.tsctl("set", "a", "--max-delay", "12.5", "--client-timeout", "30")
    served.tsctl("register", "own.py:handle", "--name", "own")
    exported = served.tsctl("export")
    (served.folder / "all.yaml").write_text(exported)
    pids = served.pids("a")

    assert served.tsctl("apply", "all.yaml") == "No change: the models are as `all.yaml` says\n"
    assert served.pids("a") == pids

    (served.folder / "none.yaml").write_text("models: {}\n")
    served.tsctl("apply", "none.yaml")
    assert served.status["models"] == []
    done = served.run("apply", "-", input=exported)
    assert (done.returncode, served.tsctl("export")) == (0, exported), done.stderr
    assert (answer(served, "a"), answer(served, "own")) == ("1", "own")


def test_another_version_takes_over_under_load_and_a_rollback_survives_restart_upgrade_and_lost_archive(
    served: Served,
) -> None:
    first, second = served.pack_told("1", "a"), served.pack_told("2", "a", version="2.0")
    served.tsctl("apply", write(served, {"a": {"source": first, "settings": {"batchSize": 4}}}))
    wanted = write(served, {"a": {"source": second, "workers": 2, "settings": {"batchSize": 8}}})

    with Load(served, "/predictions/a") as load:
        dry = changes(served, "apply", wanted, "--dry-run")
        assert answer(served, "a") == "1"
        assert changes(served, "apply", wanted) == dry == ["register a 2.0", "default a 2.0", "unregister a 1.0"]
        assert answer(served, "a") == "2"
    assert load.failures == [] and {"1"} <= {each.told for each in load} <= {"1", "2"}

    (served.store / first).unlink()
    served.tsctl("stop")
    served.start()
    assert changes(served, "rollback", "a") == ["register a 1.0", "default a 1.0", "unregister a 2.0"]
    assert answer(served, "a") == "1" and served.describe("a")["batchSize"] == 4
    served.tsctl("upgrade")
    served.note_address()
    changes(served, "rollback", "a")
    assert answer(served, "a") == "2" and served.describe("a")["batchSize"] == 8


def test_a_change_that_fails_is_undone(served: Served) -> None:
    served.tsctl("register", served.pack_told("1", "a"), "--batch-size", "4")
    before = served.tsctl("export")
    other, broken = served.pack_told("2", "a"), served.pack_told("broken", "b")

    done = served.run("apply", write(served, {"a": {"source": other}, "b": {"source": broken}}))

    assert done.returncode == 1 and "`b` 1.0: " in done.stderr and "ValueError: this one cannot be" in done.stderr
    assert "hint: the changes before it are undone" in done.stderr
    assert answer(served, "a") == "1" and served.tsctl("export") == before

    served.tsctl("unregister", "a")
    done = served.run("apply", write(served, {"a": {"source": other, "sha256": "0" * 64}}))
    assert done.returncode == 1 and f"expected {'0' * 64}" in done.stderr
    assert "hint: nothing was changed" in done.stderr and served.status["models"] == []
