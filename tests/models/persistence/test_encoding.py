"""The snapshot's text is that of the whole document, and only parts that have changed are encoded."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.daemon import StubDaemon
from tests.models.persistence.test_snapshot import entries, words
from tsctl.daemon.models.persistence import snapshot_file
from tsctl.daemon.models.persistence.snapshot import EarlierModel, Snapshot, SnapshotEntry
from tsctl.daemon.models.persistence.snapshot_file import SnapshotEncoder, encode_snapshot
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.routing.route import Route
from tsctl.daemon.models.settings import Overrides

routes = st.builds(Route, weights=st.just((("1.0", 40.0), ("2.0", 60.0))))
# Entries are few: what matters is which of them come again in the next snapshot.
PARTS = [
    SnapshotEntry(name=name, version="1", request=Registration(url=name, overrides=Overrides(batch_size=7)))
    for name in ("a", '\n"\\é', "{}[],:")
]
EARLIER = [EarlierModel(name=each.name, change="set\n", time=1.5, versions=(each,), route=None) for each in PARTS]
whole = st.builds(
    Snapshot,
    models=st.lists(st.sampled_from(PARTS), max_size=4).map(tuple),
    earlier=st.lists(st.sampled_from(EARLIER), max_size=2).map(tuple),
    routes=st.dictionaries(words, routes, max_size=2),
)


@settings(max_examples=20)
@given(st.builds(Snapshot, models=st.lists(entries, max_size=2).map(tuple)) | whole)
def test_the_text_is_indented_json_as_if_encoded_in_one_piece(snapshot: Snapshot) -> None:
    text = encode_snapshot(snapshot)

    assert text == msgspec.json.format(text, indent=2) + b"\n"


@given(st.lists(whole, min_size=2, max_size=4))
def test_an_encoder_that_knows_a_part_writes_the_same_text(snapshots: list[Snapshot]) -> None:
    encoder = SnapshotEncoder()

    for each in snapshots:
        assert encoder.encode(each) == encode_snapshot(each)


def test_the_members_of_the_document_are_the_fields_of_the_snapshot() -> None:
    kept = {"m": Route(weights=(("1.0", 100.0),))}  # a service may keep what it has
    document = msgspec.json.decode(encode_snapshot(Snapshot(extensions={"noted": kept})))

    assert list(document) == list(Snapshot.__dataclass_fields__)
    assert document["extensions"]["noted"]["m"]["weights"] == [["1.0", 100.0]]


def test_only_what_has_changed_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    text_of = snapshot_file._part_text

    def noted(part: SnapshotEntry | EarlierModel) -> bytes:
        encoded.append(part.name)
        return text_of(part)

    monkeypatch.setattr(snapshot_file, "_part_text", noted)
    one, two, three = (SnapshotEntry(name=name, version="1", request=Registration(url="m.mar")) for name in "abc")
    encoder = SnapshotEncoder()
    encoder.encode(Snapshot(models=(one, two)))

    encoder.encode(Snapshot(models=(one, replace(two, default=True), three)))

    assert encoded == ["a", "b", "b", "c"]


async def test_a_version_that_has_not_changed_keeps_its_entry(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    memory = bench.registrar.ledger.memory
    (before,) = memory._saved.models

    await bench.register(bench.mar(name="other"))

    kept, new = memory._saved.models
    assert (kept is before, new.name) == (True, "other")
