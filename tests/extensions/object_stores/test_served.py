"""A model comes from a store of objects to a real daemon, by `tsctl apply`; its clients are never in the daemon."""

import hashlib
import importlib.util
from pathlib import Path

import pytest

from tests.e2e.served import Served
from tests.extensions.object_stores.servers import GoogleStore, serve_store


@pytest.mark.thin
@pytest.mark.skipif(importlib.util.find_spec("gcsfs") is None, reason="needs gcsfs: pip install -e '.[dev]'")
def test_a_file_names_an_object_and_its_digest(idle: Served) -> None:
    content = (idle.store / idle.pack("echo")).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    file = idle.folder / "models.yaml"
    file.write_text(f"models:\n  echo:\n    source: gs://models/echo.mar\n    version: '1.0'\n    sha256: {digest}\n")
    with serve_store(GoogleStore) as store:
        store.files["models/echo.mar"] = content
        idle.environment |= {"STORAGE_EMULATOR_HOST": store.url, "NO_PROXY": "*"}
        idle.start("--allowed-urls", "gs://models/.*")
        idle.tsctl("apply", "models.yaml")

        assert idle.ask("/predictions/echo", b"x").status == 200
        assert "gcsfs" not in Path(f"/proc/{idle.pid}/maps").read_text()
        assert idle.tsctl("apply", "models.yaml").startswith("No change")
        asked = len(store.asked)
        idle.tsctl("unregister", "echo")
        done = idle.run("apply", "models.yaml")
        assert done.returncode == 0 and len(store.asked) > asked

    (idle.folder / "none.yaml").write_text("models: {echo: {source: 'gs://others/echo.mar', version: '1.0'}}")
    done = idle.run("apply", "none.yaml")
    assert done.returncode == 1 and "Given URL gs://others/echo.mar does not match any allowed URL(s)" in done.stderr
    assert idle.ask("/predictions/echo", b"x").status == 200
