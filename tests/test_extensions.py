"""The shelf beside the core: who may name an extension, and what it costs that there are any."""

import subprocess
import sys
from collections.abc import Collection

from tests.lab.house import CAPABILITIES, core, hits
from tests.lab.left_out import libraries
from tests.places import ROOT
from tests.test_imports import SOURCES, imports_of, within
from tsctl.daemon.extension import Extension
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.extension import names

SHELF, LIST = "daemon.extensions", "daemon.server.extensions"
# Of these two there is more than a folder: files of the core name them, and why (python -m tests.lab house --names).
WOVEN = {
    "routing": {
        "daemon/api/inference/routes.py": "each request passes the choice of its version, compiled",
        "daemon/models/persistence/ledger.py": "a route is saved with the versions that it names",
        "daemon/models/persistence/snapshot.py": "likewise: its form",
        "daemon/models/persistence/startup.py": "and restored before them",
        "daemon/models/registrar.py": "a route changes when its versions come and go",
        "daemon/models/registry.py": "a version that a route names is not unregistered",
        "daemon/server/kernel.py": "the daemon is ready when the versions that answer are",
    },
    "upgrade": {
        "daemon/__main__.py": "a process replaces another one, and stays as the stand-in of its own replacement",
        "daemon/api/management/commands.py": "changes are refused meanwhile",
        "daemon/api/management/openapi.py": "its operation",
        "daemon/core/errors.py": "changes are refused meanwhile, or it fails",
        "daemon/events/events.py": "its events, and which of them say that a daemon runs",
        "daemon/lifecycle/boot.py": "the second way into service",
        "daemon/lifecycle/instance.py": "sockets and locks are inherited",
        "daemon/lifecycle/shutdown.py": "the second way out of service",
        "daemon/lifecycle/sockets.py": "a lock is inherited",
        "daemon/models/persistence/ledger.py": "the gate that refuses changes",
        "daemon/server/assembly.py": "it is made of the daemon's parts",
        "daemon/server/daemon.py": "a successor is not stopped, and its files stay",
        "daemon/server/routes.py": "its route, on the control socket",
    },
}


def folder_of(module: str) -> str:
    """Return the extension that a module belongs to; empty for one of the core."""
    shelf = next((each for each in (SHELF, "tsctl.extensions") if within(module, (each,))), None)
    return "" if shelf is None else module.removeprefix(f"{shelf}.").partition(".")[0]


def importers(folders: Collection[str]) -> set[str]:
    """Return the modules that import one of these folders of the shelf, and lie elsewhere."""
    return {
        module
        for module, path in SOURCES.items()
        for name in imports_of(path)
        if folder_of(name) in folders and folder_of(name) != folder_of(module)
    }


def test_one_file_alone_imports_extensions_from_elsewhere() -> None:
    assert importers([each.name for each in EXTENSIONS]) == {LIST}


def test_extensions_alone_import_the_libraries_of_the_shelf() -> None:
    found = {name: {folder_of(module) for module in importers([name])} for name in libraries()}

    assert found == libraries()
    assert all(found.values())
    assert set[str]().union(*found.values()) <= {each.name for each in EXTENSIONS}


def test_no_file_of_the_core_names_an_extension_but_these_the_two_that_are_woven_into_it() -> None:
    found = {name: {hit.file for hit in hits(core(), name)} for name in CAPABILITIES}

    assert {each.name for each in EXTENSIONS} <= CAPABILITIES.keys()
    assert {name: files for name, files in found.items() if files} == {name: {*rows} for name, rows in WOVEN.items()}


def test_each_folder_of_the_shelf_is_one_word_in_the_list_or_a_library() -> None:
    folders = {path.parent.name for path in (ROOT / "daemon/extensions").glob("*/__init__.py")}

    assert sorted(each.name for each in EXTENSIONS) == sorted(folders - {*libraries()})
    assert all(isinstance(each, Extension) for each in EXTENSIONS)


def test_each_folder_of_the_command_line_is_of_an_extension_of_the_list_or_needs_none() -> None:
    assert {*names()} - {each.name for each in EXTENSIONS} <= {"console"}  # which asks the daemon as other clients do


def test_reading_the_list_imports_tables_alone() -> None:
    program = f"import sys, tsctl.{LIST}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    ours = {name for name in done.stdout.split() if name.startswith("tsctl.daemon.")}
    listed = {f"tsctl.{SHELF}", *(f"tsctl.{SHELF}.{each.name}" for each in EXTENSIONS)}
    tables = ("tsctl.daemon.model_settings", "tsctl.daemon.declarations", "tsctl.daemon.setting_values")
    rows = {name for name in ours if within(name, tables)}
    assert ours - rows == {"tsctl.daemon.extension", "tsctl.daemon.server", f"tsctl.{LIST}"} | listed
    assert not {"asyncio", "logging", "msgspec"} & set(done.stdout.split())
