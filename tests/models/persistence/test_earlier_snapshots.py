"""A snapshot that an earlier version wrote is read, and what is written now is read by an earlier version.

An earlier version writes null for what nobody said, and decodes into a dataclass of these fields.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.kit.archives import model_files, write_files
from tests.kit.daemon import StubDaemon
from tsctl.daemon.models.persistence.snapshot import BrokenSnapshot, Snapshot, SnapshotEntry, decode_snapshot
from tsctl.daemon.models.persistence.snapshot_file import SnapshotFile, encode_snapshot
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.settings import Overrides
from tsctl.handlers.wire import Declared, Input

UNSAID: dict[str, Any] = {
    "batch_size": None, "max_delay": None, "policy": None, "workers": None, "max_workers": None, "fallback_workers": 0,
    "response_timeout": None, "startup_timeout": None, "queue_jobs": None, "since": {},
    "queue_timeout": None, "max_memory": None, "cpus": None, "retry": None,
}  # fmt: skip
SAID: dict[str, Any] = {
    "batch_size": 4, "max_delay": 0.02, "policy": "greedy", "workers": 1, "max_workers": 3, "fallback_workers": 2,
    "response_timeout": 7.0, "startup_timeout": 8.0, "queue_jobs": 9,
    "since": {"workers": "scale", "batch_size": "set"}, "queue_timeout": 2.5, "max_memory": 2**30,
    "cpus": [0], "retry": False,
}  # fmt: skip
READ = SAID | {"cpus": (0,)}
EarlierWishes = msgspec.defstruct(
    "EarlierWishes",
    [
        ("batch_size", int | None, None), ("max_delay", float | None, None), ("policy", str | None, None),
        ("workers", int | None, None), ("max_workers", int | None, None), ("fallback_workers", int, 0),
        ("response_timeout", float | None, None), ("startup_timeout", float | None, None),
        ("queue_jobs", int | None, None),
        ("since", dict[str, str], msgspec.field(default_factory=dict)), ("queue_timeout", float | None, None),
        ("max_memory", int | None, None), ("cpus", tuple[int, ...] | None, None), ("retry", bool | None, None),
    ],
)  # fmt: skip


def document(overrides: dict[str, Any]) -> bytes:
    """Write a snapshot as an earlier version did."""
    request: dict[str, Any] = {"url": "m", "model_name": None, "handler": None, "runtime": None, "wishes": overrides}
    request |= {"synchronous": True, "local_paths": False}
    entry: dict[str, Any] = {"name": "m", "version": "1.0", "request": request, "default": True, "chosen": False}
    models = [entry | {"unpacked": None, "archive": None, "listed": False}]
    return json.dumps({"version": 1, "models": models}, indent=2).encode() + b"\n"


def overrides_in(content: bytes) -> Any:
    (entry,) = json.loads(content)["models"]
    return entry["request"]["wishes"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param(SAID, Overrides(**READ), id="everything"),
        pytest.param(UNSAID, Overrides(fallback_workers=0), id="nothing"),
        pytest.param({}, Overrides(), id="not even that"),
        pytest.param({"batch_size": 4, "colour": "red"}, Overrides(batch_size=4), id="what a later version wrote"),
    ],
)
def test_the_wishes_of_an_earlier_version_are_read(written: dict[str, Any], read: Overrides) -> None:
    (entry,) = decode_snapshot(document(written)).models

    assert entry.request.overrides == read


def test_an_earlier_version_reads_what_is_written_now() -> None:
    models = (SnapshotEntry(name="m", version="1.0", request=Registration(url="m", overrides=Overrides(**READ))),)

    written = overrides_in(encode_snapshot(Snapshot(models=models)))

    assert msgspec.convert(written, EarlierWishes) == EarlierWishes(**READ)
    assert written == SAID


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": "4"}, {"max_delay": "soon"}, {"policy": 1}, {"cpus": "0-3"}, {"cpus": ["0"]},
        {"retry": 1}, {"max_memory": "4GiB"}, {"since": {"workers": 1}}, {"since": []}, [], 1,
    ],
    ids=str,
)  # fmt: skip
def test_wishes_of_a_wrong_type_break_a_snapshot(wrong: Any) -> None:
    with pytest.raises(BrokenSnapshot, match="Expected `"):
        decode_snapshot(document(wrong))


def test_a_file_that_an_earlier_version_wrote_is_current_until_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_bytes(document(SAID))

    memory = SnapshotFile(file, print)

    assert memory.is_current()
    file.write_bytes(document(UNSAID))
    assert not memory.is_current()


async def test_a_model_that_an_earlier_version_registered_is_served_as_it_was(bench: StubDaemon) -> None:
    write_files(bench.store / "m", model_files())
    bench.snapshot.write_bytes(document(SAID))

    restored = (await bench.restart()).registry.find("m")

    settings = restored.settings
    assert (settings.batch_size, settings.max_delay, settings.policy) == (4, 0.02, "greedy")
    assert (settings.max_memory, settings.cpus) == (2**30, (0,))
    assert (restored.presence.least, restored.presence.most) == (1, 3)
    assert (settings.origins["workers"], settings.origins["batch_size"]) == ("scale", "set")
    assert settings.origins["queue_jobs"] == "register"
    assert overrides_in(bench.snapshot.read_bytes()) == SAID


def entry_with(declared: Any) -> bytes:
    parsed = json.loads(document({}))
    parsed["models"][0]["declared"] = declared
    return json.dumps(parsed).encode()


def test_a_declaration_is_read_as_it_was_written() -> None:
    declared = Declared([Input("texts", "text", "list[str]")], batches=True, batch_size=4, built_in=True)
    entry = SnapshotEntry(name="m", version="1.0", request=Registration(url="m"), declared=declared, notes=("a",))

    (read,) = decode_snapshot(encode_snapshot(Snapshot(models=(entry,)))).models

    assert read == entry


@pytest.mark.parametrize(
    "declared",
    [
        pytest.param([[["smell", "scent", ""]], True], id="an input of a later version"),
        pytest.param({"inputs": []}, id="another form"),
        pytest.param("list[str]", id="no declaration"),
    ],
)
def test_a_declaration_that_is_unknown_here_loses_no_registration(declared: Any) -> None:
    (entry,) = decode_snapshot(entry_with(declared)).models

    assert (entry.name, entry.declared) == ("m", None)
