"""The image's entry point as KServe starts it: arguments, variables, user 1000, read-only folders; asked by clients."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deploy.manifests import FOLDER, documents, start_of
from tests.e2e.container import Contain, Container
from tests.e2e.served import PATIENCE, Served
from tests.kit.shelf import needs
from tests.tsctl.container.kserve_file import KSERVE_FILE

ROOT = Path(__file__).parents[2]
STORAGE = ROOT / ".deploy" / "storage" / "bin" / "python"
(RUNTIME,) = documents(FOLDER / "kserve" / "clusterservingruntime.yaml")
(SERVICE,) = documents(FOLDER / "kserve" / "inferenceservice.yaml")
SNAPSHOT = {
    "name": "startup.cfg", "modelCount": 2,
    "models": {
        name: {"1.0": {"defaultVersion": True, "marName": f"{name}.mar", "minWorkers": 1, "maxWorkers": 1,
                       "batchSize": 1, "maxBatchDelay": 10, "responseTimeout": 60}}
        for name in ("doubles", "mnist")
    },
}  # fmt: skip

Start = Callable[..., Container]


@pytest.fixture
def models(idle: Served) -> Path:
    """The folder that a storage URI names: config.properties, and a store of two archives."""
    for name in ("doubles", "mnist"):
        idle.pack("doubles", name=name)
    folder = idle.folder / "models"
    (folder / "config").mkdir(parents=True)
    lines = [line for line in KSERVE_FILE.splitlines() if not line.startswith("model_snapshot")]
    text = "\n".join([*lines, f"model_snapshot={json.dumps(SNAPSHOT)}"])
    (folder / "config" / "config.properties").write_text(text)
    idle.store.rename(folder / "model-store")
    return folder


@pytest.fixture
def start(models: Path, contain: Contain) -> Start:
    def start(protocol: str | None, folder: Path = models, *further: Path) -> Container:
        made = start_of(RUNTIME, SERVICE, protocol)
        mounts = {Path("/mnt/models"): folder} | {each: each for each in further}
        container = contain(made.args, mounts, **made.environment)
        container.wait_until_ready()
        return container

    return start


@pytest.mark.parametrize("protocol", ["v1", "v2", "grpc-v2"])
def test_kserves_sdk_asks_each_model_of_a_service(start: Start, protocol: str) -> None:
    python = ROOT / ".clients" / "kserve" / "bin" / "python"
    if not python.exists():
        pytest.skip("`python -m tests.lab clients` installs KServe's SDK")
    container = start(protocol)
    done = container.run(python, ROOT / "tests" / "e2e" / "clients" / "kserve_service.py", protocol)

    assert done.returncode == 0, done.stderr[-3000:] + container.output[-3000:]
    assert done.stdout.endswith("every call did as it should\n")


@needs("prometheus")
def test_ports_and_privileges_are_those_of_the_contract(start: Start) -> None:
    container = start("v1")

    status = Path(f"/proc/{container.pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == ["1000"] * 4
    assert {fields[name] for name in ("CapPrm", "CapEff", "CapBnd")} == {"0" * 16}
    # gRPC opens every address of both families for 0.0.0.0.
    listening = [each.replace("*", "0.0.0.0") for each in container.run("ss", "-Hltn").stdout.split()[3::5]]
    assert sorted(listening) == [
        "0.0.0.0:7070", "0.0.0.0:8080", "0.0.0.0:8081", "0.0.0.0:8082", "127.0.0.1:8085",
    ]  # fmt: skip
    assert container.get("http://127.0.0.1:8080/models")[0] == 404  # no management beside predictions
    assert container.get("http://127.0.0.1:8085/models")[0] == 200
    assert "tsctl_queue_jobs" in container.get("http://127.0.0.1:8082/metrics")[1]
    assert container.get("http://127.0.0.1:8080/v1/models")[1].count("doubles") == 2
    assert "`http://0.0.0.0:8085` is `http://127.0.0.1:8085` in this container" in container.output
    assert container.stop() == 0


def test_without_config_or_label_all_archives_of_the_folder_are_served(start: Start, models: Path) -> None:
    (models / "config" / "config.properties").unlink()
    for archive in (models / "model-store").iterdir():
        archive.rename(models / archive.name)
    (models / "model-store").rmdir()
    container = start(None)

    told = json.loads(container.get("http://127.0.0.1:8080/v1/models")[1])
    assert (sorted(told["models"]), "error" in container.output.lower()) == (["doubles", "mnist"], False)
    done = container.run("curl", "-sS", "http://127.0.0.1:8080/v1/models/mnist:predict", "-d", '{"instances": [4]}')
    assert json.loads(done.stdout) == {"predictions": [8]}


def test_the_layout_of_kserves_storage_initializer_is_served(start: Start, models: Path, tmp_path: Path) -> None:
    if not STORAGE.exists():
        pytest.skip("`python -m tests.lab deploy-tools` installs kserve-storage")
    target = tmp_path / "mounted"
    program = f"from kserve_storage import Storage; Storage.download('file://{models}', '{target}')"
    subprocess.run([STORAGE, "-c", program], check=True, capture_output=True, timeout=PATIENCE)

    assert (target / "model-store").is_symlink()

    container = start("v1", target, models)

    assert container.get("http://127.0.0.1:8080/v1/models/doubles")[0] == 200
