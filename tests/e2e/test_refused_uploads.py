"""A client whose upload is too large reads the reason, for bodies of any size and encoding."""

import contextlib
import http.client
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.backend import Backend

pytestmark = pytest.mark.thin


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    backend = Backend(max_body=1024**2)
    yield backend
    backend.stop()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 256 MiB that takes no room on the disk."""
    path = tmp_path_factory.mktemp("large") / "large"
    with path.open("wb") as file:
        file.truncate(256 * 1024**2)
    return path


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["-H", "Expect:"], id="at once"),
        pytest.param([], id="when it is asked for"),
        pytest.param(["-H", "Expect:", "-H", "Transfer-Encoding: chunked"], id="in chunks"),
        pytest.param(["-H", "Transfer-Encoding: chunked"], id="in chunks, when it is asked for"),
        pytest.param(["-H", "Expect:", "--http1.0"], id="in HTTP/1.0"),
    ],
)
def test_curl_sees_the_answer(backend: Backend, large: Path, options: list[str]) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("needs the Debian program curl")
    url = f"http://127.0.0.1:{backend.port}/"

    done = subprocess.run(
        [curl, "-sS", "-m", "20", url, "-T", str(large), "-w", "%{http_code}", *options], capture_output=True, text=True
    )

    assert done.stdout.endswith("413") and "max_request_size" in done.stdout, done


@pytest.mark.parametrize("megabytes", [2, 8, 256])
@pytest.mark.parametrize("is_chunked", [False, True], ids=["of known length", "in chunks"])
def test_a_client_that_sends_all_before_it_reads_is_not_cut_off(
    backend: Backend, megabytes: int, is_chunked: bool
) -> None:
    """The strictest client: a single broken pipe fails."""
    length = {} if is_chunked else {"Content-Length": str(megabytes * 1024**2)}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", backend.port, timeout=30)) as client:
        client.request("POST", "/", (bytes(1024**2) for _ in range(megabytes)), length, encode_chunked=is_chunked)

        assert client.getresponse().status == 413
