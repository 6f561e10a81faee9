"""A snapshot remembers whether a version has a quarantine, in the form of earlier versions."""

import pytest

from tests.models.persistence.test_earlier_snapshots import document, overrides_in
from tsctl.daemon.models.persistence.snapshot import BrokenSnapshot, decode_snapshot
from tsctl.daemon.models.persistence.snapshot_file import encode_snapshot
from tsctl.daemon.models.settings import Overrides


def test_the_quarantine_that_an_earlier_version_wrote_is_read_and_written_back() -> None:
    snapshot = decode_snapshot(document({"quarantine": False}))

    assert snapshot.models[0].request.overrides == Overrides(quarantine=False)
    assert overrides_in(encode_snapshot(snapshot))["quarantine"] is False
    with pytest.raises(BrokenSnapshot, match="Expected `"):
        decode_snapshot(document({"quarantine": 1}))
