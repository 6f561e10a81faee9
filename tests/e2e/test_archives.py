"""Archives as they come: every form is served, and what is wrong with one is told in a sentence."""

import json
import os
import zipfile
from pathlib import Path

import pytest

from tests.e2e.served import ARCHIVES, Served


def write_zip(path: Path, **members: str) -> str:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/"), content)
    return path.name


def manifest(**model: object) -> str:
    entry = {"modelName": "bad", "modelVersion": "1.0", "handler": "echo.py"} | model
    return json.dumps({"runtime": "python", "model": {k: v for k, v in entry.items() if v is not None}})


@pytest.mark.parametrize("form", ["default", "zip-store", "tgz", "no-archive"])
def test_every_form_that_archive_writes_is_served(shared: Served, tmp_path: Path, form: str) -> None:
    handler = str(ARCHIVES / "echo.py")
    options = ["--handler", handler, "--export-path", str(tmp_path), "--archive-format", form]
    written = shared.tsctl("archive", "--model-name", "formed", "--version", "1.0", *options).strip()

    shared.tsctl("register", written)

    assert shared.ask("/predictions/formed", b"x").json["row"] == {"body": {"bytearray": "x"}}
    shared.tsctl("unregister", "formed")


BAD = {
    "a name that is not there": ("nothing.mar", "Model not found at: nothing.mar"),
    "a path that is not there": ("/no/such/model.mar", "no directory `/no/such`"),
    "a path that climbs": ("../x.mar", "no file `../x.mar`"),
    "a remote archive": ("https://example.org/x.mar", "does not match any allowed URL(s)"),
    "no zip": ("text.mar", "neither a zip nor a gzipped tar file"),
    "a zip cut short": ("short.mar", "damaged or cut short"),
    "an entry that climbs out": ("climbs.mar", "would write outside its directory: `../escaped`"),
    "no manifest": ("bare.mar", "has no MAR-INF/MANIFEST.json"),
    "a manifest that is not JSON": ("nojson.mar", "The manifest is not JSON"),
    "a manifest without a name": ("nameless.mar", "Model name is not defined."),
    "an unknown handler": ("unknown.mar", "Unknown handler `magic`"),
    "a file that is not there": ("lacking.mar", "names the file `model.pt`, which the archive does not contain"),
    "another runtime": ("ruby.mar", "Runtime is not defined or invalid."),
    "a module with a name of ours": ("ours.mar", "holds a module `handlers`, a name that tsctl itself uses"),
    "a workflow": ("flow.war", "The archive holds a workflow; tsctl serves only models"),
    "a group of machines": ("group.mar", "`nnodes` of `torchrun` is 2, but a worker's processes run on this machine"),
}  # fmt: skip


@pytest.fixture(scope="module")
def bad_archives(shared: Served) -> None:
    store = shared.store
    (store / "text.mar").write_text("this is no archive")
    write_zip(store / "whole.mar", **{"MAR-INF__MANIFEST.json": manifest(), "echo.py": "x = 1\n" * 1000})
    (store / "short.mar").write_bytes((store / "whole.mar").read_bytes()[:2000])
    write_zip(store / "climbs.mar", **{"MAR-INF__MANIFEST.json": manifest(), "..__escaped": "gotcha"})
    write_zip(store / "bare.mar", **{"echo.py": ""})
    write_zip(store / "nojson.mar", **{"MAR-INF__MANIFEST.json": "{"})
    write_zip(store / "nameless.mar", **{"MAR-INF__MANIFEST.json": manifest(modelName=None)})
    write_zip(store / "unknown.mar", **{"MAR-INF__MANIFEST.json": manifest(handler="magic")})
    write_zip(store / "lacking.mar", **{"MAR-INF__MANIFEST.json": manifest(serializedFile="model.pt"), "echo.py": ""})
    write_zip(store / "ruby.mar", **{"MAR-INF__MANIFEST.json": manifest().replace('"python"', '"ruby"')})
    write_zip(store / "ours.mar", **{"MAR-INF__MANIFEST.json": manifest(), "echo.py": "", "handlers__x.py": ""})
    write_zip(store / "flow.war", **{"WAR-INF__MANIFEST.json": "{}", "spec.yaml": ""})
    group = {
        "MAR-INF__MANIFEST.json": manifest(configFile="m.yaml"),
        "echo.py": "",
        "m.yaml": "parallelType: tp\ntorchrun: {nproc-per-node: 2, nnodes: 2}",
    }
    write_zip(store / "group.mar", **group)


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


def test_the_same_version_twice_is_a_conflict(shared: Served) -> None:
    again = shared.run("register", "echo.mar")

    assert again.returncode == 1
    assert "Model version 1.0 is already registered for model echo" in again.stderr


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
