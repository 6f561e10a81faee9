"""`tsctl apply`, `export` and `rollback` on a real daemon: what a file says is served, once and for all."""

import json
from typing import Any

import pytest
import yaml

from tests.e2e.load import Load
from tests.e2e.served import Served

ANSWERS = "def handle(data, context):\n    return [b'{}'] * len(data)\n"
BROKEN = "raise ValueError('no weights')\n\n\ndef handle(data, context):\n    return data\n"


def pack(served: Served, name: str, version: str, text: str, file: str) -> str:
    """Put an archive of a handler with this text into the store, as `file`."""
    handler = served.folder / "answers.py"
    handler.write_text(text)
    options = (
        "--name",
        name,
        "--version",
        version,
        "--handler",
        str(handler),
        "--export-path",
        str(served.store),
    )
    served.tsctl("archive", *options, "--force")
    (served.store / f"{name}.mar").rename(served.store / file)
    return file


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
    pack(served, "a", "1.0", ANSWERS.format(1), "a1.mar")
    pack(served, "a", "2.0", ANSWERS.format(2), "a2.mar")
    (served.folder / "own.py").write_text(ANSWERS.format("own"))
    served.tsctl("register", "a1.mar", "--batch-size", "4", "--max-memory", "2GiB", "--cpus", "0")
    served.tsctl("register", "a2.mar", "--workers", "0")
    served.tsctl("scale", "a/1.0", "2")
    served.tsctl("set", "a", "--max-delay", "12.5", "--client-timeout", "30")
    served.tsctl("register", "own.py:handle", "--name", "own")
    exported = served.tsctl("export")
    (served.folder / "all.yaml").write_text(exported)
    pids = [worker["pid"] for worker in served.describe("a")["workers"]]

    assert served.tsctl("apply", "all.yaml") == "No change: the models are as `all.yaml` says\n"
    assert [worker["pid"] for worker in served.describe("a")["workers"]] == pids

    (served.folder / "none.yaml").write_text("models: {}\n")
    served.tsctl("apply", "none.yaml")
    assert served.status["models"] == []
    done = served.run("apply", "-", input=exported)
    assert (done.returncode, served.tsctl("export")) == (0, exported), done.stderr
    assert (answer(served, "a"), answer(served, "own")) == ("1", "own")


def test_another_version_takes_over_under_load_and_a_rollback_survives_restart_upgrade_and_lost_archive(
    served: Served,
) -> None:
    first = pack(served, "a", "1.0", ANSWERS.format(1), "a1.mar")
    second = pack(served, "a", "2.0", ANSWERS.format(2), "a2.mar")
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
    pack(served, "a", "1.0", ANSWERS.format(1), "a.mar")
    served.tsctl("register", "a.mar", "--batch-size", "4")
    before = served.tsctl("export")
    pack(served, "a", "1.0", ANSWERS.format(2), "a.mar")  # the same version, and another archive
    pack(served, "b", "1.0", BROKEN, "b.mar")

    done = served.run("apply", write(served, {"a": {"source": "a.mar"}, "b": {"source": "b.mar"}}))

    assert done.returncode == 1 and "`b` 1.0: " in done.stderr and "ValueError: no weights" in done.stderr
    assert "hint: the changes before it are undone" in done.stderr
    assert answer(served, "a") == "1" and served.tsctl("export") == before


def test_the_file_of_a_wrong_archive_changes_nothing(served: Served) -> None:
    pack(served, "a", "1.0", ANSWERS.format(1), "a.mar")

    done = served.run("apply", write(served, {"a": {"source": "a.mar", "sha256": "0" * 64}}))

    assert done.returncode == 1 and f"expected {'0' * 64}" in done.stderr
    assert "hint: nothing was changed" in done.stderr and served.status["models"] == []


def test_a_route_is_set_exported_and_rolled_back(served: Served) -> None:
    sources = {
        version: {"source": pack(served, "a", version, ANSWERS.format(version[0]), f"a{version}.mar")}
        for version in ("1.0", "2.0")
    }
    file = write(served, {"a": {"versions": sources, "route": {"1.0": 90, "2.0": 10}}})

    assert changes(served, "apply", file) == ["register a 1.0", "register a 2.0", "route a 1.0=90 2.0=10"]
    exported = served.tsctl("export")
    assert yaml.safe_load(exported)["models"]["a"]["route"] == {"1.0": 90, "2.0": 10}
    assert changes(served, "apply", file) == []

    write(served, {"a": {"versions": sources, "default": "2.0"}})
    assert changes(served, "apply", file) == ["default a 2.0"]
    assert changes(served, "rollback", "a") == ["route a 1.0=90 2.0=10"]
    assert served.tsctl("export") == exported
    assert changes(served, "rollback", "a") == ["default a 2.0"]

    served.tsctl("rollback", "a")
    assert changes(served, "apply", write(served, {})) == ["route a 1.0", "unregister a 2.0", "unregister a 1.0"]
