"""Rejected registrations: each case with TorchServe's status, type and message."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, error, said, sentence
from tests.models.archives.web import Web, serving_web
from tsctl.daemon.marfile import Packing, write_archive


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving_web() as server:
        yield server


def tell(house: House, method: str, target: str, *headers: str, body: bytes = b"") -> tuple[int, Any]:
    return asyncio.run(house.tell(method, target, body, *headers))


def register(house: House, url: str) -> tuple[int, Any]:
    return tell(house, "POST", "/models", "Content-Type: application/json", body=json.dumps({"url": url}).encode())


def archive(folder: Path) -> bytes:
    return write_archive(Packing(model_name="packed", version="2.0", handler="image_classifier"), folder).read_bytes()


REGISTERED = sentence(
    'Model "packed" Version: 2.0 registered with 0 initial workers. Use scale workers API to add workers for the model.'
)


def not_allowed(url: str) -> tuple[int, Any]:
    why = "the daemon's `--allowed-urls` has no pattern for it"
    return error(404, "ModelNotFoundException", f"Given URL {url} does not match any allowed URL(s): {why}")


def test_a_remote_archive_is_served_like_a_file(tmp_path: Path, web: Web) -> None:
    house = House(tmp_path, own=False, allowed_urls=f"file:///nowhere,{web.url}/MODELS/.*")
    web.files["/models/packed.mar"] = archive(tmp_path)
    (house.store / "packed.mar").write_bytes(b"something else")

    told = register(house, f"{web.url}/models/packed.mar")

    assert said(told) == REGISTERED
    assert house.registry.find("packed").source.url == f"{web.url}/models/packed.mar"
    assert list((tmp_path / "downloads").iterdir()) == []
    assert (house.store / "packed.mar").read_bytes() == b"something else"
    assert register(house, f"{web.url}/other/packed.mar") == not_allowed(f"{web.url}/other/packed.mar")


@pytest.mark.parametrize(
    ("file", "limit", "kind", "message"),
    [
        ("missing.mar", "1000000", "DownloadArchiveException", "Failed to download archive from: {}/missing.mar"),
        ("junk.mar", "1000000", "InvalidModelException", "The archive `junk.mar` is neither a zip nor a gzipped tar"),
        ("packed.mar", "100", "DownloadArchiveException", "Failed to download archive from: {}/packed.mar"),
    ],
)
def test_a_remote_archive_that_cannot_be_taken_says_so(
    file: str, limit: str, kind: str, message: str, tmp_path: Path, web: Web
) -> None:
    house = House(tmp_path, allowed_urls=".*", archive_bytes=limit)
    web.files |= {"/junk.mar": b"junk", "/packed.mar": archive(tmp_path)}

    status, document = register(house, f"{web.url}/{file}")

    assert (status, document["type"]) == (400, kind)
    assert document["message"].startswith(message.format(web.url))


def test_a_file_url_that_is_allowed_names_a_path_also_over_tcp(tmp_path: Path) -> None:
    (tmp_path / "daemon").mkdir()
    (tmp_path / "outside").mkdir()
    archive(tmp_path / "outside")
    house = House(tmp_path / "daemon", own=False, allowed_urls=f"file://{tmp_path}/outside/.*")

    assert said(register(house, f"file://{tmp_path}/outside/packed.mar")) == REGISTERED
    climbing = f"file://{tmp_path}/outside/../packed.mar"
    message = f"Relative path is not allowed in url: {climbing}"
    assert register(house, climbing) == error(404, "ModelNotFoundException", message)


@pytest.mark.parametrize(("method", "target"), [("POST", "/models?url=m"), ("DELETE", "/models/m")])
async def test_where_registration_is_off_it_is_not_allowed_and_the_rest_is(
    method: str, target: str, tmp_path: Path
) -> None:
    house = House(tmp_path, own=False, enable_model_api="false")
    await house.serve("m")

    status, document = await house.tell(method, target)

    assert (status, document["type"]) == (405, "MethodNotAllowedException")
    assert "--enable-model-api" in document["message"]
    assert (await house.tell("GET", "/models/m"))[0] == 200
    assert (await house.tell("PUT", "/models/m?min_worker=1"))[0] == 202
