"""The image's entry point under Docker and SageMaker, played by a container without a container runtime."""

import json
import sys
from pathlib import Path

import pytest

from tests.e2e.container import Contain, Container
from tests.e2e.served import ARCHIVES, Served
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


def test_docker_runs_the_server_with_the_files_of_torchserves_image(contain: Contain, idle: Served) -> None:
    idle.pack("echo")
    container = contain([f"torchserve --start --ts-config {CONFIG} --disable-token-auth"], home_of(idle))
    container.wait_until_ready()

    assert json.loads(predict(container, "/predictions/echo"))["rows"] == 1
    assert container.get("http://127.0.0.1:8081/models")[0] == 200
    addresses = container.run("ss", "-Hltn").stdout.split()[3::5]
    assert sorted(addresses) == ["0.0.0.0:8080", "0.0.0.0:8082", "127.0.0.1:8081"]


def test_a_shells_line_starts_the_server_in_the_background(contain: Contain) -> None:
    torchserve = f"{sys.executable} -P -m tsctl.container.torchserve"
    line = f"{torchserve} --start --ncs && {torchserve} --stop; {torchserve} --stop; exit 3"
    container = contain(["sh", "-c", line], {})

    assert container.wait() == 3
    lines = [line for line in container.output.splitlines() if not line.startswith("note: ")]
    assert lines == ["Model server started.", "TorchServe has stopped.", "TorchServe is not currently running."]


def test_sigterm_lets_a_request_end(contain: Contain, idle: Served) -> None:
    idle.pack("answer", config="batchSize: 1\n")  # answers in pieces are answers to one
    container = contain(["serve"], home_of(idle))
    container.wait_until_ready()
    url = "http://127.0.0.1:8080/predictions/answer"
    with container.begin("curl", "-sSN", "-H", "content-type: application/octet-stream", url, "-d", "count 20") as curl:
        assert curl.stdout is not None
        first = curl.stdout.read(2)  # the answer has begun

        assert container.stop() == 0
        assert (first + curl.stdout.read()).split() == [*map(str, range(20)), "end"]


@pytest.mark.parametrize("layout", ["archive", "unpacked"])
def test_sagemakers_contract(contain: Contain, idle: Served, layout: str) -> None:
    folder = idle.store
    if layout == "archive":
        idle.pack("echo")
    else:
        unpacked = ("--archive-format", "no-archive", "--export-path", str(idle.store))
        idle.tsctl("archive", "--name", "echo", "--version", "1.0", "--handler", str(ARCHIVES / "echo.py"), *unpacked)
        folder = idle.store / "echo"
    container = contain(["serve"], {SAGEMAKER_MODEL: folder}, SAGEMAKER_MODEL_SERVER_WORKERS="2")
    container.wait_until_ready()

    assert container.get("http://127.0.0.1:8080/ping")[0] == 200
    assert json.loads(predict(container, "/invocations"))["rows"] == 1
    assert container.stop() == 0
