"""The shape of a row is read from a TorchScript file as torch writes it, without torch."""

import pickle
import zipfile
from pathlib import Path

import pytest

from tsctl.serving.sample import RowShape, row_shape


def tensor(*size: int) -> bytes:
    """Return a tensor as torch pickles it: a storage, an offset, the size, the strides."""
    numbers = b"".join(b"M" + length.to_bytes(2, "little") for length in size)
    return b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagetQK\0(" + numbers + b"t(K\x01ttR"


def module(name: str, *tensors: bytes) -> bytes:
    return b"\x80\x02c__torch__.torch.nn.modules\n" + name.encode() + b"\n)\x81" + b"".join(tensors) + b"."


def written(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"net/{name}.pkl", content)
    return path


@pytest.mark.parametrize(
    ("members", "shape"),
    [
        pytest.param({"data": module("Linear", tensor(8, 4))}, RowShape((4,), True), id="a linear layer"),
        pytest.param(
            {"data": module("Conv2d", tensor(8, 3, 3, 3))}, RowShape((3, 224, 224), False), id="a convolution"
        ),
        pytest.param({"data": module("Embedding", tensor(100, 8))}, RowShape((3,), False, True), id="an embedding"),
        pytest.param(
            {"data": module("Conv2d", tensor(8, 3, 3, 3)), "traced_inputs": module("X", tensor(1, 3, 32, 32))},
            RowShape((3, 32, 32), True),
            id="a traced model",
        ),
        pytest.param({"data": module("Own", tensor(8, 4))}, None, id="a layer of one's own"),
        pytest.param({"data": pickle.dumps([1, 2], 2)}, None, id="no tensor"),
        pytest.param({"data": b"no pickle"}, None, id="no pickle"),
        pytest.param({}, None, id="nothing"),
    ],
)
def test_the_shape_of_a_row(members: dict[str, bytes], shape: RowShape | None, tmp_path: Path) -> None:
    assert row_shape(written(tmp_path / "net.pt", **members)) == shape


def test_a_file_that_is_no_zip_has_no_shape(tmp_path: Path) -> None:
    (tmp_path / "net.pt").write_bytes(b"no zip")

    assert row_shape(tmp_path / "net.pt") is None


@pytest.mark.heavy
def test_the_shape_of_a_row_of_what_torch_writes(tmp_path: Path) -> None:
    import torch
    from torch import nn

    torch.jit.script(nn.Sequential(nn.Linear(4, 8), nn.ReLU())).save(str(tmp_path / "a.pt"))
    torch.jit.trace(nn.Conv2d(3, 8, 3), torch.zeros(1, 3, 32, 16)).save(str(tmp_path / "b.pt"))

    assert row_shape(tmp_path / "a.pt") == RowShape((4,), True)
    assert row_shape(tmp_path / "b.pt") == RowShape((3, 32, 16), True)
