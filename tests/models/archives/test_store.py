"""Archives come from the store; a path outside it only for who may name one."""

import json
from pathlib import Path

import pytest

from tests.kit.said import said_in
from tsctl.daemon.core.errors import ArchiveNotFound
from tsctl.daemon.models.archives.download import archives, locate, sizes


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = tmp_path / "store"
    (store / "inner").mkdir(parents=True)
    for name in ("b.mar", "a.tar.gz", "c.tgz", "d.model", "notes.txt", ".hidden.mar", "inner/e.mar"):
        (store / name).touch()
    (tmp_path / "outside.mar").touch()
    return store


@pytest.mark.parametrize("name", ["b.mar", "inner/e.mar", "inner"])
@pytest.mark.parametrize("local_paths", [True, False])
def test_a_name_is_looked_for_in_the_store(name: str, local_paths: bool, store: Path) -> None:
    assert locate(name, store, local_paths=local_paths) == store / name
    assert locate(str(store / name), store, local_paths=local_paths) == store / name


@pytest.mark.parametrize("name", ["outside.mar", "store-of-somebody-else/m.mar"])
def test_a_path_outside_the_store_is_only_for_the_command_line(name: str, store: Path) -> None:
    outside = store.parent / name
    outside.parent.mkdir(exist_ok=True)
    outside.touch()

    assert locate(str(outside), store, local_paths=True) == outside
    for configured in (store, None):
        with pytest.raises(ArchiveNotFound, match="Model not found at"):
            locate(str(outside), configured, local_paths=False)


@said_in("not_there.txt")
def test_what_is_not_there_or_not_allowed_is_a_sentence(given: str, store: Path) -> str:
    url = json.loads(given).replace("LONG", "x" * 5000)
    with pytest.raises(ArchiveNotFound) as caught:
        locate(url, store, local_paths=True)
    assert caught.value.status == 404
    return str(caught.value).replace(str(store), "STORE").replace("x" * 5000, "LONG").replace("\0", "NUL")


def test_the_store_lists_what_could_be_registered_with_sizes(store: Path, tmp_path: Path) -> None:
    (store / "b.mar").write_bytes(bytes(10))

    assert archives(store) == ["a.tar.gz", "b.mar", "c.tgz", "d.model", "inner"]
    assert sizes(store)[1::3] == [{"name": "b.mar", "bytes": 10}, {"name": "inner", "bytes": None}]
    assert (sizes(None), archives(None), archives(tmp_path / "removed meanwhile")) == ([], [], [])
    with pytest.raises(ArchiveNotFound, match="Model store has not been configured"):
        locate("b.mar", None, local_paths=True)
