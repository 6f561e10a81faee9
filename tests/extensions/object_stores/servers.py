"""Stores of objects on the loopback: Google's JSON API, and the hub's API, as far as their clients ask."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from tests.kit.web import web_server

S = TypeVar("S", bound="StoreServer")
COMMIT = "c" * 40


class StoreServer:
    """A store that holds objects by name, and serves ranges of them.

    Attributes:
        files: name → content.
        asked: the ranges that were asked for.
        cuts: how many of the next answers with content end in the middle.
        spoils: whether content is sent with another first byte.
        held: content behind the first range is not sent before this is set; None to send all.
    """

    def __init__(self) -> None:
        self.url = ""
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.cuts = 0
        self.spoils = False
        self.held: threading.Event | None = None

    def document(self, method: str, path: str, body: bytes) -> Any:
        """Return the JSON that answers a request; None if the path names content, or nothing."""
        raise NotImplementedError

    def content(self, path: str) -> str:
        """Return the name of the object whose content a path asks for; empty for none."""
        raise NotImplementedError

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = unquote(urlsplit(handler.path).path)
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        name = self.content(path)
        if name in self.files:
            self._send_content(handler, self.files[name])
            return
        document = self.document(handler.command, path, body)
        text = json.dumps({"error": "not found"} if document is None else document).encode()
        handler.send_response(404 if document is None else 200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(text)))
        if document is None:
            handler.send_header("X-Error-Code", "RepoNotFound")
        handler.end_headers()
        handler.wfile.write(text)

    def _send_content(self, handler: BaseHTTPRequestHandler, content: bytes) -> None:
        whole = f"0-{len(content) - 1}"
        first, _, last = handler.headers.get("Range", f"bytes={whole}").removeprefix("bytes=").partition("-")
        self.asked.append(f"{first}-{last}")
        if self.held is not None and first != "0":
            self.held.wait()
        part = content[int(first) : int(last) + 1]
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        handler.send_header("Content-Length", str(len(part)))
        handler.end_headers()
        if self.spoils and first == "0":
            part = b"?" + part[1:]
        if self.cuts:
            self.cuts -= 1
            handler.wfile.write(part[: len(part) // 2])
            handler.close_connection = True
            return
        handler.wfile.write(part)


class GoogleStore(StoreServer):
    """Google Cloud Storage: `files` by BUCKET/OBJECT."""

    def content(self, path: str) -> str:
        found = re.fullmatch(r"/download/storage/v1/b/([^/]+)/o/(.+)", path)
        return f"{found[1]}/{found[2]}" if found else ""

    def document(self, method: str, path: str, body: bytes) -> Any:
        found = re.fullmatch(r"/storage/v1/b/([^/]+)/o/(.+)", path)
        name = f"{found[1]}/{found[2]}" if found else ""
        if name not in self.files:
            return {"items": []} if path.endswith("/o") else None
        content = self.files[name]
        return {
            "kind": "storage#object",
            "bucket": name.partition("/")[0],
            "name": name.partition("/")[2],
            "size": str(len(content)),
            "generation": hashlib.sha1(content).hexdigest(),
            "md5Hash": base64.b64encode(hashlib.md5(content).digest()).decode(),
            "mediaLink": f"{self.url}/download/storage/v1/b/{name.replace('/', '/o/', 1)}",
        }


class HubStore(StoreServer):
    """Hugging Face's hub: `files` by OWNER/REPO/FILE; files named `large…` are known by their SHA-256."""

    def content(self, path: str) -> str:
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path)
        return f"{found[1]}/{found[2]}" if found else ""

    def document(self, method: str, path: str, body: bytes) -> Any:
        if re.fullmatch(r"/api/models/[^/]+/[^/]+(/revision/[^/]+)?", path):
            repository = "/".join(path.split("/")[3:5])
            known = any(name.startswith(f"{repository}/") for name in self.files)
            return {"id": repository, "sha": COMMIT, "siblings": []} if known else None
        found = re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/[^/]+/?", path)
        if found is None:
            return None
        prefix = f"{found[1]}/"
        return [
            _hub_file(name.removeprefix(prefix), content)
            for name, content in self.files.items()
            if name.startswith(prefix)
        ]


def _hub_file(name: str, content: bytes) -> dict[str, Any]:
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    known: dict[str, Any] = {"type": "file", "path": name, "size": len(content), "oid": blob}
    if name.startswith("large"):
        known["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return known


@contextmanager
def serve_store(kind: type[S]) -> Iterator[S]:
    """Serve a store within the block."""
    store = kind()
    with web_server(store.answer, "HTTP/1.1") as store.url:
        yield store
