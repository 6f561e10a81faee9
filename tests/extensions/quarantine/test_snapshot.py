"""A snapshot remembers whether a version has a quarantine."""

import pytest

from tests.models.persistence.test_snapshot import entry_with
from tsctl.daemon.models.persistence.snapshot import BrokenSnapshot, decode_snapshot
from tsctl.daemon.models.persistence.snapshot_file import encode_snapshot
from tsctl.daemon.models.settings import Overrides


def test_whether_a_version_has_a_quarantine_is_written_and_read() -> None:
    snapshot = decode_snapshot(entry_with({"quarantine": False}))

    assert snapshot.models[0].request.overrides == Overrides(quarantine=False)
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot
    with pytest.raises(BrokenSnapshot, match="Expected `"):
        decode_snapshot(entry_with({"quarantine": 1}))
