"""`tsctl optimize`: a model is measured with each set of optimisations, and registered again with one."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.served import Served
from tests.handlers.optimize.nets import pack_net
from tsctl.handlers.builtin.vision import example_image

LONG = 600.0  # seconds of patience: seven loads, two of which compile
SETS = ["none", "default", "bf16", "int8", "compile", "onnxruntime", "bf16,compile"]


@pytest.fixture
def net(served: Served, tmp_path: Path) -> Served:
    """A daemon with a small image classifier in batches of four, whose archive has a sample."""
    sample = tmp_path / "sample.jpg"
    sample.write_bytes(example_image())
    config = "warmup: sample.jpg\nmaxBatchDelay: 20\n"
    archive = pack_net(tmp_path / "net", served.store, config, extra_files=str(sample))
    served.tsctl("register", archive, "--batch-size", "4")
    return served


def setting(served: Served, name: str) -> Any:
    (found,) = [each for each in served.describe("net")["tsctl"]["settings"] if each["name"] == name]
    return found["value"]


def test_each_set_is_measured_in_turns_with_that_of_now_while_the_model_serves(net: Served) -> None:
    (worker,) = net.describe("net")["workers"]

    done = net.run("optimize", "net", "--seconds", "0.05", "--json", patience=LONG)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = {row["optimize"]: row for row in found["rows"]}
    assert list(rows) == SETS
    assert found["batchSize"] == 4
    assert [name for name, row in rows.items() if row["now"]] == ["default"]
    assert rows["none"]["outcomes"] == []
    assert {each["name"] for each in rows["default"]["outcomes"]} == {"fast_images", "fold", "channels_last"}
    measured = [row for row in rows.values() if not row["refused"]]
    assert all(row["perSecond"] > 0 and row["memory"] > 0 and row["load"] > 0 for row in measured)
    assert all(row["gain"] > 0 for row in measured) and rows["default"]["gain"] == 1.0
    assert [each["pid"] for each in net.describe("net")["workers"]] == [worker["pid"]], "it went on serving"
    assert len(list((net.folder / "state" / "trials").glob("*.json"))) == 1, "outcomes of throw-away workers are theirs"


def test_a_set_is_applied_and_all_other_settings_stay(net: Served) -> None:
    done = net.run("optimize", "net", "--apply", "none,channels_last", patience=LONG)

    assert done.returncode == 0, done.stderr
    assert "Changed: optimizations default → none,channels_last" in done.stderr
    assert (setting(net, "optimize"), setting(net, "batchSize")) == (["none", "channels_last"], 4)
    assert [each["name"] for each in net.describe("net")["tsctl"]["optimize"]] == ["channels_last"]
    assert net.ask("/predictions/net", example_image()).status == 200

    net.tsctl("optimize", "net", "--apply", "default")

    assert (setting(net, "optimize"), setting(net, "batchSize")) == ([], 4)
    names = {each["name"] for each in net.describe("net")["tsctl"]["optimize"]}
    assert names == {"fast_images", "fold", "channels_last"}
