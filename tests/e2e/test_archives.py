"""Archives as they come: what is wrong with one is told in a sentence. Each form is served by test_archiver.py."""

import json
import os
import zipfile
from pathlib import Path

import pytest

from tests.e2e.served import Served


def write_zip(path: Path, **members: str) -> str:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/"), content)
    return path.name


MANIFEST = json.dumps({"runtime": "python", "model": {"modelName": "bad", "modelVersion": "1.0", "handler": "echo.py"}})


BAD = {
    "a path that climbs": ("../x.mar", "no file `../x.mar`"),
    "a zip cut short": ("short.mar", "damaged or cut short"),
    "an entry that climbs out": ("climbs.mar", "would write outside its directory: `../escaped`"),
    "no manifest": ("bare.mar", "has no MAR-INF/MANIFEST.json"),
    "a workflow": ("flow.war", "The archive holds a workflow; tsctl serves only models"),
}  # fmt: skip


@pytest.fixture(scope="module")
def bad_archives(shared: Served) -> None:
    store = shared.store
    write_zip(store / "whole.mar", **{"MAR-INF__MANIFEST.json": MANIFEST, "echo.py": "x = 1\n" * 1000})
    (store / "short.mar").write_bytes((store / "whole.mar").read_bytes()[:2000])
    write_zip(store / "climbs.mar", **{"MAR-INF__MANIFEST.json": MANIFEST, "..__escaped": "gotcha"})
    write_zip(store / "bare.mar", **{"echo.py": ""})
    write_zip(store / "flow.war", **{"WAR-INF__MANIFEST.json": "{}", "spec.yaml": ""})


def listed(served: Served) -> list[tuple[str, str]]:
    return [(model["name"], model["version"]) for model in json.loads(served.tsctl("ls", "--json"))]


@pytest.mark.thin
@pytest.mark.usefixtures("bad_archives")
@pytest.mark.parametrize(("url", "sentence"), BAD.values(), ids=BAD.keys())
def test_a_bad_archive_is_refused_with_a_sentence_and_leaves_nothing(shared: Served, url: str, sentence: str) -> None:
    models = shared.folder / "state" / "models"
    before = sorted(os.listdir(models)), listed(shared)

    refused = shared.run("register", url)

    assert refused.returncode == 1
    assert sentence in refused.stderr
    assert (sorted(os.listdir(models)), listed(shared)) == before
    assert not (shared.folder / "state" / "escaped").exists()


@pytest.mark.thin
def test_versions_live_side_by_side_until_the_default_is_chosen(served: Served) -> None:
    served.register("echo", name="pair", version="1.0")
    served.register("obey", name="pair", version="2.0")
    body = json.dumps({"do": "nothing"}).encode()
    assert "row" in served.ask("/predictions/pair", body).json
    assert "pid" in served.ask("/predictions/pair/2.0", body, content_type="application/json").json
    kept = served.run("unregister", "pair/1.0")
    assert "Cannot remove default version for model pair" in kept.stderr

    served.tsctl("default", "pair/2.0")

    assert "pid" in served.ask("/predictions/pair", body, content_type="application/json").json
    served.tsctl("unregister", "pair/1.0")
    assert [model["version"] for model in json.loads(served.tsctl("ls", "--json"))] == ["2.0"]
    assert served.ask("/predictions/pair/1.0", body).status == 404
