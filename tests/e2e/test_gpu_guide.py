"""The examples of docs/guides/gpus.md, on two null cards (tests/kit/null_gpu)."""

from pathlib import Path

import yaml

from tests.deploy.manifests import FOLDER, documents
from tests.e2e.served import Served, typed
from tests.e2e.test_documented import BLOCK
from tests.kit.null_gpu.cards import cards_or_skip
from tests.places import ROOT

BLOCKS = list(BLOCK.finditer((ROOT / "docs" / "guides" / "gpus.md").read_text()))


def test_the_commands_work_as_typed(idle: Served, tmp_path: Path) -> None:
    idle.environment |= cards_or_skip(tmp_path, 2).environment
    commands = "\n".join(block["text"] for block in BLOCKS if block["kind"] == "bash" and not block["reason"])
    (idle.folder / "typed").mkdir()

    done = typed(idle, commands, idle.folder / "typed", "TSCTL_MODEL_STORE")

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines.count("GPU 0-1 Null Card, 2.0 GiB each") == 2, "in `tsctl status`, and in `tsctl describe`"
    named = "GPU 0-1: Null Card, 2.0 GiB each"
    assert (lines.count(named), done.stderr.splitlines().count(named)) == (1, 1), "of `tsctl top`, and of `tsctl ls`"
    columns, _ = (line.split() for line in lines if line.startswith("MODEL"))  # of `ls`, and of `top`
    assert columns[:5] == ["MODEL", "VERSION", "STATE", "WORKERS", "GPU"]
    assert any(line.startswith("doubles 1.0 ready 2/2 0-1 ") for line in lines), done.stdout
    assert any(line.startswith("tsctl_worker_gpu_memory_bytes{") for line in lines)


def test_the_patch_fits_the_deployment() -> None:
    [overlay] = [yaml.safe_load(block["text"]) for block in BLOCKS if block["kind"] == "yaml"]
    [patch] = [yaml.safe_load(each["patch"]) for each in overlay["patches"]]
    [deployment] = documents(FOLDER / "kubernetes" / "deployment.yaml")

    assert [patch[name] for name in ("apiVersion", "kind")] == [deployment[name] for name in ("apiVersion", "kind")]
    assert patch["metadata"]["name"] == deployment["metadata"]["name"]
    assert patch["spec"]["strategy"]["rollingUpdate"].keys() == deployment["spec"]["strategy"]["rollingUpdate"].keys()
    names = {each["name"] for each in deployment["spec"]["template"]["spec"]["containers"]}
    assert {each["name"] for each in patch["spec"]["template"]["spec"]["containers"]} <= names
