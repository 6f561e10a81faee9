"""A model comes from a store of objects to a real daemon; its clients are never in the daemon."""

import hashlib
import importlib.util
import random
import threading
import zipfile
from pathlib import Path

import pytest

from tests.e2e.served import Served, eventually
from tests.extensions.object_stores.servers import GoogleStore, serve_store

PIECE = 1 << 20  # bytes, which are asked for first

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gcsfs") is None, reason="needs gcsfs: pip install -e '.[dev]'"
)


@pytest.mark.thin
def test_a_registration_names_an_object_and_its_digest(idle: Served) -> None:
    content = (idle.store / idle.pack("echo")).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    pinned = f"/models?url=gs://models/echo.mar&initial_workers=1&sha256={digest}"
    with serve_store(GoogleStore) as store:
        store.files["models/echo.mar"] = content
        idle.environment |= {"STORAGE_EMULATOR_HOST": store.url, "NO_PROXY": "*"}
        idle.start("--allowed-urls", "gs://models/.*")
        assert idle.command("POST", pinned).status == 200

        assert idle.ask("/predictions/echo", b"x").status == 200
        assert "gcsfs" not in Path(f"/proc/{idle.pid}/maps").read_text()
        asked = len(store.asked)
        idle.tsctl("unregister", "echo")
        assert idle.command("POST", pinned).status == 200 and len(store.asked) > asked

    done = idle.run("register", "gs://others/echo.mar")
    assert done.returncode == 1 and "Given URL gs://others/echo.mar does not match any allowed URL(s)" in done.stderr
    assert idle.ask("/predictions/echo", b"x").status == 200


def test_a_download_that_ended_with_its_daemon_is_gone_on_with_by_the_next_one(idle: Served) -> None:
    archive = idle.store / idle.pack("echo")
    with zipfile.ZipFile(archive, "a") as opened:
        opened.writestr("weights", random.Random(7).randbytes(2 * PIECE))
    downloads = idle.folder / "state/downloads"
    with serve_store(GoogleStore) as store:
        store.files["models/echo.mar"], store.held = archive.read_bytes(), threading.Event()
        idle.environment |= {"STORAGE_EMULATOR_HOST": store.url, "NO_PROXY": "*"}
        idle.start("--allowed-urls", "gs://models/.*")
        command = threading.Thread(target=idle.run, args=("register", "gs://models/echo.mar"))
        command.start()
        eventually(lambda: [f.stat().st_size for f in downloads.glob("*/data")] == [PIECE], "has the first piece")
        idle.kill()
        command.join()
        store.held.set()
        store.held = None

        idle.start("--allowed-urls", "gs://models/.*")
        assert [each.name.partition("-")[0] for each in downloads.iterdir()] == ["part"]
        idle.tsctl("register", "gs://models/echo.mar")

        assert store.asked.count(f"0-{PIECE - 1}") == 1
    assert idle.ask("/predictions/echo", b"x").status == 200
    assert list(downloads.iterdir()) == []
