"""A file of models is read into the state that it asks for; its errors name the line, the key and the remedy."""

import json
from pathlib import Path

import pytest
import yaml

from tests.kit.said import said_in
from tsctl.daemon.marfile import Packing, write_archive
from tsctl.errors import CliError
from tsctl.extensions.apply.export import export
from tsctl.extensions.apply.file import parse, read_file
from tsctl.extensions.apply.state import ModelSpec, VersionSpec

HANDLER = "def handle(data, context):\n    return data\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `handler.py`, and a model store `store` with `m.mar`, version 2.0, and `m.tar.gz`, 3.0."""
    (tmp_path / "handler.py").write_text(HANDLER)
    (tmp_path / "store").mkdir()
    for version, kind in (("2.0", "default"), ("3.0", "tgz")):
        packing = Packing(model_name="m", version=version, handler=str(tmp_path / "handler.py"))
        write_archive(packing, tmp_path / "store", archive_format=kind)
    return tmp_path


def read(text: str, folder: Path) -> dict[str, ModelSpec]:
    return parse(text, "f.yaml", folder, folder / "store")


def test_an_archive_of_the_store_with_all_keys(folder: Path) -> None:
    pin = "A" * 64
    text = f"""
models:
  m:
    source: m.mar
    version: 2.0
    sha256: {pin}
    handler: image_classifier
    workers: {{min: 1, max: 4}}
    settings: {{batchSize: 8, maxBatchDelay: 20, maxMemory: 2048MiB, cpus: "0,1"}}
"""
    spec = VersionSpec(
        url=f"{folder}/store/m.mar",
        sha256=pin.lower(),
        handler="image_classifier",
        workers=(1, 4),
        settings={"batchSize": 8, "maxBatchDelay": 20.0, "maxMemory": "2 GiB", "cpus": "0-1"},
    )

    assert read(text, folder) == {"m": ModelSpec(versions={"2.0": spec}, default="2.0")}


@pytest.mark.parametrize(
    ("source", "version", "url"),
    [
        pytest.param("m.mar", "2.0", "{}/store/m.mar", id="a name in the store"),
        pytest.param("m.tar.gz", "3.0", "{}/store/m.tar.gz", id="a tar"),
        pytest.param("store/m.mar", "2.0", "{}/store/m.mar", id="a path from the file's folder"),
        pytest.param("handler.py", "1.0", "{}/handler.py", id="a handler"),
        pytest.param("./handler.py:handle", "1.0", "{}/handler.py:handle", id="a function of it"),
    ],
)
def test_the_version_is_read_from_the_source(source: str, version: str, url: str, folder: Path) -> None:
    model = read(f"models: {{a: {{source: '{source}'}}}}", folder)["a"]

    assert model.default == version and model.versions[version].url == url.format(folder)


def test_several_versions_keep_their_names_as_written(folder: Path) -> None:
    text = """
models:
  m:
    default: 1.10
    versions:
      1.10: {source: "https://models.example/a.mar"}
      2.0: {source: m.mar, workers: 2}
"""
    model = read(text, folder)["m"]

    assert list(model.versions) == ["1.10", "2.0"] and model.default == "1.10"


def test_parts_in_common_are_written_once(folder: Path) -> None:
    text = "models:\n  a: &a\n    source: m.mar\n    workers: 2\n  b:\n    <<: *a\n    workers: 3\n"
    models = read(text, folder)

    assert [models[name].versions["2.0"].workers for name in "ab"] == [(2, 2), (3, 3)]


TWO = "models: {{a: {{versions: {{2.0: {{source: m.mar}}, 3.0: {{source: m.tar.gz}}}}, {}}}}}"


@said_in("routes.txt")
def test_a_route_shares_requests_and_its_largest_weight_is_the_default(given: str, folder: Path) -> str:
    model = read(TWO.format(given), folder)["a"]
    return f"{json.dumps(model.route)}, default {model.default}"


@said_in("bad_routes.txt")
def test_a_route_that_cannot_be_is_refused(given: str, folder: Path) -> str:
    with pytest.raises(CliError) as caught:
        read(TWO.format(given), folder)
    return caught.value.message


@said_in("errors.txt")
def test_an_error_names_line_key_and_remedy(given: str, folder: Path) -> str:
    with pytest.raises(CliError) as caught:
        read(json.loads(given).replace("BRACKETS", "[" * 10_000).replace("LONGNAME", "m" * 300), folder)
    said = f"{caught.value.message}\nhint: {caught.value.hint}"
    return said.replace(str(folder), "FOLDER").replace("m" * 300, "LONGNAME")


@pytest.mark.parametrize("fast", [True, False])
def test_a_file_is_read_alike_without_libyaml(fast: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not fast:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    text = "models:\n  m: &m\n    source: m.mar\n    version: 2.0\n  n:\n    <<: *m\n    settings: {batchSize: 8}\n"

    assert [each.versions["2.0"].settings for each in read(text, folder).values()] == [{}, {"batchSize": 8}]
    with pytest.raises(CliError, match=r"^f.yaml:2: this is no YAML: found character '@' that cannot start any token$"):
        read("models:\n  @m: {}\n", folder)


def test_json_may_be_indented_by_tabs(folder: Path) -> None:
    if not yaml.__with_libyaml__:
        pytest.skip("PyYAML was built without libyaml, and takes no tabs")

    assert read('{\n\t"models": {\n\t\t"m": {"source": "m.mar"}\n\t}\n}', folder).keys() == {"m"}


def test_a_store_that_is_gone_is_told(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CliError) as caught:
        parse("models: {a: {source: n.mar}}", "f.yaml", folder, tmp_path / "gone")

    assert "gone` cannot be read: No such file" in caught.value.hint


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="cannot read"):
        read_file(tmp_path, None)


def test_an_export_is_read_as_the_state_that_it_was_written_of(folder: Path) -> None:
    settings = {"batchSize": 8, "maxBatchDelay": 50.0, "queueTimeout": 0.5, "cpus": "0-1", "retry": True}
    archive = VersionSpec(url=f"{folder}/store/m.mar", sha256="1" * 64, workers=(1, 2), settings=settings)
    function = VersionSpec(url=f"{folder}/handler.py:handle", workers=(0, 0), fallback_batch_size=8)
    module = VersionSpec(url=str(folder), handler="handler:handle", workers=(1, 1), fallback_batch_size=8)
    remote = VersionSpec(url="https://models.example/a.mar", workers=(1, 1))
    state = {
        "a": ModelSpec(versions={"2.0": archive}, default="2.0"),
        "b": ModelSpec(versions={"1.0": function}, default="1.0"),
        "c": ModelSpec(versions={"1.0": module}, default="1.0"),
        "d": ModelSpec(versions={"1.10": remote, "2.0": archive}, default="1.10"),
        "e": ModelSpec(
            versions={"1.0": remote, "2.0": archive}, default="2.0", route={"weights": {"1.0": 0.5, "2.0": 10.0}}
        ),
        "f": ModelSpec(
            versions={"1.0": remote, "2.0": archive},
            default="2.0",
            route={"weights": {"2.0": 1.0}, "sticky": "ip", "shadow": "1.0", "sample": 0.05, "allow_effects": True},
        ),
    }

    text = export(state, folder / "store")

    assert "source: m.mar\n" in text and read(text, folder / "store") == state
