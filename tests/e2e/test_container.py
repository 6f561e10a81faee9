"""The image's entry point under Docker and SageMaker, played by a container without a container runtime."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.container import Container, needs_container
from tests.e2e.served import Served
from tsctl.container.host import SAGEMAKER_MODEL
from tsctl.container.torchserve import CONFIG

HOME = CONFIG.parent
DOCKER_FILE = """\
inference_address=http://0.0.0.0:8080
management_address=http://0.0.0.0:8081
metrics_address=http://0.0.0.0:8082
load_models=all
model_store=/home/model-server/model-store
"""


@pytest.fixture
def run(idle: Served, tmp_path: Path) -> Iterator[Any]:
    needs_container()
    started: list[Container] = []

    def run(words: list[str], mounts: dict[Path, Path], **environment: str) -> Container:
        container = Container.of_this_machine(tmp_path, words, {"TSCTL_TEMPLATE": "false"} | environment, mounts)
        started.append(container)
        return container

    yield run
    for container in started:
        container.kill()


def home_of(idle: Served) -> dict[Path, Path]:
    """A home as TorchServe's image has it: config.properties and the store."""
    folder = idle.folder / "home"
    folder.mkdir()
    (folder / "config.properties").write_text(DOCKER_FILE)
    (folder / "model-store").mkdir()
    for archive in idle.store.iterdir():
        archive.rename(folder / "model-store" / archive.name)
    return {HOME: folder}


def predict(container: Container, path: str) -> str:
    return container.run("curl", "-sS", f"http://127.0.0.1:8080{path}", "-d", "x").stdout


@pytest.mark.parametrize("words", [["serve"], [], [f"torchserve --start --ts-config {CONFIG} --disable-token-auth"]])
def test_docker_runs_the_server_with_the_files_of_torchserves_image(run: Any, idle: Served, words: list[str]) -> None:
    idle.pack("echo")
    container = run(words, home_of(idle))
    container.wait_until_ready()

    assert json.loads(predict(container, "/predictions/echo"))["rows"] == 1
    assert container.get("http://127.0.0.1:8081/models")[0] == 200
    addresses = container.run("ss", "-Hltn").stdout.split()[3::5]
    assert sorted(addresses) == ["0.0.0.0:8080", "0.0.0.0:8082", "127.0.0.1:8081"]


def test_a_shells_line_starts_the_server_in_the_background(run: Any) -> None:
    torchserve = f"{sys.executable} -P -m tsctl.container.torchserve"
    container = run(["sh", "-c", f"{torchserve} --start --ncs && {torchserve} --stop; {torchserve} --stop; exit 3"], {})

    assert container.wait() == 3
    lines = [line for line in container.output.splitlines() if not line.startswith("note: ")]
    assert lines == ["Model server started.", "TorchServe has stopped.", "TorchServe is not currently running."]


def test_sigterm_lets_a_request_end(run: Any, idle: Served) -> None:
    config = idle.folder / "model-config.yaml"
    config.write_text("batchSize: 1\n")  # answers in pieces are answers to one
    idle.pack("answer", config_file=config)
    container = run(["serve"], home_of(idle))
    container.wait_until_ready()
    url = "http://127.0.0.1:8080/predictions/answer"
    with container.begin("curl", "-sSN", "-H", "content-type: application/octet-stream", url, "-d", "count 20") as curl:
        first = curl.stdout.read(2)  # the answer has begun

        assert container.stop() == 0
        assert (first + curl.stdout.read()).split() == [*map(str, range(20)), "end"]


@pytest.mark.parametrize("layout", ["archive", "unpacked"])
def test_sagemakers_contract(run: Any, idle: Served, layout: str) -> None:
    folder = idle.store
    if layout == "archive":
        idle.pack("echo")
    else:
        idle.tsctl(
            "archive", "--name", "echo", "--version", "1.0", "--handler",
            str(Path(__file__).parent / "archives" / "echo.py"), "--archive-format", "no-archive",
            "--export-path", str(idle.store),
        )  # fmt: skip
        folder = idle.store / "echo"
    container = run(["serve"], {SAGEMAKER_MODEL: folder}, SAGEMAKER_MODEL_SERVER_WORKERS="2")
    container.wait_until_ready()

    assert container.get("http://127.0.0.1:8080/ping")[0] == 200
    assert json.loads(predict(container, "/invocations"))["rows"] == 1
    assert container.stop() == 0
