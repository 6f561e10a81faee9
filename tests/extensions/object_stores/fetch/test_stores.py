"""The program downloads from servers of the interfaces of S3, Google Cloud Storage and the hub, through cuts."""

import hashlib
import importlib.util
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.object_stores.servers import GoogleStore, HubStore, serve_store
from tsctl.daemon.extensions.object_stores.fetch.reading import LEAST_PIECE
from tsctl.daemon.extensions.object_stores.fetch.stores import STORES, FetchError, filesystem_of

pytestmark = pytest.mark.slow
CONTENT = b"!" + random.Random(7).randbytes(3 * LEAST_PIECE - 1)  # a spoilt one begins with another byte
NONE = "there is no such object"


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}: pip install -e '.[dev]'")


AMAZON = needs("s3fs", "moto", "flask", "flask_cors")


# Each order has a fork of one process that has imported the stores' packages, which takes a second.
PROGRAM = """
import contextlib, io, os, sys
from tsctl.daemon.extensions.object_stores.fetch.__main__ import main
for name in ("s3fs", "gcsfs", "huggingface_hub", "google.auth"):
    with contextlib.suppress(ImportError):
        __import__(name)
for order in iter(sys.stdin.readline, ""):
    told, telling = os.pipe()
    if not os.fork():
        os.dup2(telling, 1)
        sys.stdin = io.StringIO(order)
        main()
        os._exit(0)
    os.close(telling)
    with open(told) as lines:
        print(lines.read() + "over", flush=True)
    os.wait()
"""
Fetch = Callable[..., tuple[str, list[int]]]


@pytest.fixture(scope="module")
def fetch(google: GoogleStore, hub: HubStore, amazon: dict[str, str]) -> Iterator[Fetch]:
    """Run the program, asking these stores; return what failed, and the bytes done as it told them."""
    stores = {"STORAGE_EMULATOR_HOST": google.url, "HF_ENDPOINT": hub.url, **amazon}
    environment = {**os.environ, "HF_HUB_DISABLE_TELEMETRY": "1", "NO_PROXY": "*", **stores}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    orders, told = process.stdin, process.stdout

    def run(url: str, file: Path, limit: int = 100_000_000) -> tuple[str, list[int]]:
        order = {"url": url, "file": str(file), "limit": limit, "tag": f"{file}.tag"}
        print(json.dumps(order), file=orders, flush=True)
        *progress, end = map(json.loads, iter(told.readline, "over\n"))
        assert end.keys() == {"end"}
        return end["end"], [each["done"] for each in progress]

    with process:
        yield run
        orders.close()


@pytest.fixture(scope="module")
def google() -> Iterator[GoogleStore]:
    with serve_store(GoogleStore) as store:
        yield store


@pytest.fixture(scope="module")
def hub() -> Iterator[HubStore]:
    with serve_store(HubStore) as store:
        yield store


@pytest.fixture(scope="module")
def amazon() -> Iterator[dict[str, str]]:
    """The environment for an S3 with the object s3://models/a/m.mar, and one of several parts, s3://models/parts.mar."""
    if AMAZON.args[0]:
        yield {}
        return
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    client: Any = boto3.client(
        "s3",
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="models")
    client.put_object(Bucket="models", Key="a/m.mar", Body=CONTENT)
    upload = client.create_multipart_upload(Bucket="models", Key="parts.mar")["UploadId"]
    named = {"Bucket": "models", "Key": "parts.mar", "UploadId": upload}
    part = client.upload_part(**named, PartNumber=1, Body=CONTENT)
    client.complete_multipart_upload(**named, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    yield environment
    server.stop()


@AMAZON
@pytest.mark.parametrize(
    ("url", "failure"),
    [
        pytest.param("s3://models/a/m.mar", "", id="an object"),
        pytest.param("S3://models/parts.mar", "", id="an object of several parts, whose ETag is no MD5"),
        pytest.param("s3://models/none.mar", NONE, id="no object"),
        pytest.param("s3://none/m.mar", NONE, id="no bucket"),
        pytest.param("s3://models/a", "this is a folder; name an archive in it", id="a folder"),
    ],
)
def test_from_s3(fetch: Fetch, tmp_path: Path, url: str, failure: str) -> None:
    end, progress = fetch(url, tmp_path / "file")

    assert end == failure
    if not failure:
        assert (tmp_path / "file").read_bytes() == CONTENT and progress[-1] == len(CONTENT)


@needs("gcsfs")
def test_from_google_cloud_storage_through_a_cut(fetch: Fetch, google: GoogleStore, tmp_path: Path) -> None:
    google.files["models/a/m.mar"], google.cuts = CONTENT, 1
    google.asked.clear()
    end, progress = fetch("gs://models/a/m.mar", tmp_path / "file")

    assert end == "" and (tmp_path / "file").read_bytes() == CONTENT and progress[-1] == len(CONTENT)
    assert google.cuts == 0 and google.asked.count(f"0-{LEAST_PIECE - 1}") == 2  # only that piece again


@needs("huggingface_hub")
@pytest.mark.parametrize("name", ["m.mar", "large.mar"])
def test_from_the_hub_through_a_cut(fetch: Fetch, hub: HubStore, tmp_path: Path, name: str) -> None:
    hub.files[f"owner/repo/{name}"], hub.cuts = CONTENT, 1
    end, _ = fetch(f"hf://owner/repo/{name}", tmp_path / "file")

    assert end == "" and (tmp_path / "file").read_bytes() == CONTENT and hub.cuts == 0


@needs("gcsfs", "huggingface_hub")
@pytest.mark.parametrize("url", ["gs://models/none.mar", "hf://owner/repo/none.mar", "hf://nobody/nothing/m.mar"])
def test_no_object(fetch: Fetch, hub: HubStore, tmp_path: Path, url: str) -> None:
    hub.files["owner/repo/m.mar"] = CONTENT

    assert fetch(url, tmp_path / "f") == (NONE, [])


@needs("gcsfs", "huggingface_hub")
@pytest.mark.parametrize(
    ("url", "algorithm"),
    [("gs://models/spoilt.mar", "md5"), ("hf://owner/spoilt/m.mar", "sha1"), ("hf://owner/spoilt/large.mar", "sha256")],
)
def test_bytes_that_are_not_those_of_the_store_are_refused(
    fetch: Fetch, google: GoogleStore, hub: HubStore, tmp_path: Path, url: str, algorithm: str
) -> None:
    for store in (google, hub):
        store.files[url.partition("://")[2]] = CONTENT
        store.spoils = True
    try:
        end, _ = fetch(url, tmp_path / "file")
    finally:
        google.spoils = hub.spoils = False

    spoilt = hashlib.new(algorithm, (b"blob %d\0" % len(CONTENT) if algorithm == "sha1" else b"") + b"?" + CONTENT[1:])
    assert end.startswith(f"the {algorithm} is {spoilt.hexdigest()}; expected ")


@needs("gcsfs")
def test_an_object_above_the_limit_is_refused_before_it_is_read(
    fetch: Fetch, google: GoogleStore, tmp_path: Path
) -> None:
    google.files["models/m.mar"] = CONTENT
    google.asked.clear()
    end, _ = fetch("gs://models/m.mar", tmp_path / "file", limit=1000)

    assert end == "the archive is larger than the 1000 bytes of `archive_bytes`" and google.asked == []


@pytest.mark.parametrize("scheme", STORES)
def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(
        FetchError, match=rf"{scheme}:// needs the package .*: pip install 'tsctl\[{STORES[scheme].extra}\]'"
    ):
        filesystem_of(scheme)


@pytest.mark.parametrize("url", ["ftp://a/b", "s3://", "file:///etc/passwd"])
def test_other_urls_are_refused(url: str, fetch: Fetch, tmp_path: Path) -> None:
    assert fetch(url, tmp_path / "file")[0].startswith("expected s3://BUCKET/KEY")
