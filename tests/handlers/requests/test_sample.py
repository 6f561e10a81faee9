"""The requests that `warmup` names."""

from pathlib import Path
from typing import Any

import pytest

from tsctl.handlers.requests.sample import SampleRequest, sample_of, samples_of
from tsctl.handlers.sdk.errors import HandlerError

JPEG = "image/jpeg"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "samples").mkdir()
    (tmp_path / "empty").mkdir()
    for name in ("cat.jpg", "dog.jpg", "samples/b.jpg", "samples/a.jpg"):
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


@pytest.mark.parametrize(
    ("warmup", "names", "content_type"),
    [
        pytest.param(None, [], "", id="nothing"),
        pytest.param("cat.jpg", ["cat.jpg"], "", id="a file"),
        pytest.param(["dog.jpg", "cat.jpg"], ["dog.jpg", "cat.jpg"], "", id="several, in their order"),
        pytest.param("samples", ["samples/a.jpg", "samples/b.jpg"], "", id="a folder, in the order of names"),
        pytest.param({"file": "cat.jpg", "contentType": JPEG}, ["cat.jpg"], JPEG, id="a file and its type"),
        pytest.param({"file": ["cat.jpg", "dog.jpg"], "contentType": JPEG}, ["cat.jpg", "dog.jpg"], JPEG, id="files"),
        pytest.param("../elsewhere/cat.jpg", ["cat.jpg"], "", id="never outside the archive"),
    ],
)
def test_samples_of(warmup: Any, names: list[str], content_type: str, archive: Path) -> None:
    expected = [SampleRequest(name.rpartition("/")[2], name.encode(), content_type) for name in names]

    assert samples_of(archive, {"warmup": warmup}) == expected
    assert sample_of(archive, {"warmup": warmup}) == (expected[0] if expected else None)


@pytest.mark.parametrize("warmup", [7, {"file": 7}, {"contentType": JPEG}, ["cat.jpg", 7], [""], "empty"])
def test_no_name_is_refused(warmup: Any, archive: Path) -> None:
    what = "the name of a file or folder of the archive, or a list of names"
    with pytest.raises(HandlerError, match=rf"^model-config.yaml: `warmup` is .*; expected {what}$"):
        samples_of(archive, {"warmup": warmup})
    with pytest.raises(HandlerError, match=r"`warmup` names `bird\.jpg`, and the archive does not hold it"):
        samples_of(archive, {"warmup": ["cat.jpg", "bird.jpg"]})
