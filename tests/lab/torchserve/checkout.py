"""A checkout of TorchServe's repository: where it is, which commit it is, and the files to try."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.environments import Missing

VARIABLE = "TORCHSERVE_CHECKOUT"
COMMIT = "TORCHSERVE_COMMIT"  # for a checkout without .git, as `git archive` makes one

# Keys that only a model-config.yaml has at its top.
_MODEL_KEYS = frozenset({
    "minWorkers", "maxWorkers", "batchSize", "maxBatchDelay", "responseTimeout", "startupTimeout", "deviceType",
    "deviceIds", "parallelType", "parallelLevel", "torchrun", "pt2", "micro_batching", "handler", "dali", "deepspeed",
    "pippy",
})  # fmt: skip


def checkout() -> Path:
    """Return the checkout's root.

    Raises:
        Missing: the variable names none.
    """
    text = os.environ.get(VARIABLE, "")
    root = Path(text)
    if not text or not (root / "ts" / "arg_parser.py").is_file():
        found = f"`{text}` is none" if text else "it is not set"
        raise Missing(f"{VARIABLE} must name a checkout of pytorch/serve, and {found}")
    return root.resolve()


def commit(root: Path) -> str:
    """Return the checkout's commit, shortened; `unknown` if neither git nor TORCHSERVE_COMMIT says."""
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "rev-parse", "HEAD"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    else:
        text = os.environ.get(COMMIT, "unknown")
    return text.strip()[:9]


def pages(root: Path) -> Iterator[Path]:
    """Yield the files that document commands: Markdown pages, shell scripts and Dockerfiles, in order."""
    yield from sorted([*root.rglob("*.md"), *root.rglob("*.sh"), *root.rglob("Dockerfile*")])


def configurations(root: Path) -> Iterator[Path]:
    """Yield the files of the kind config.properties, in order."""
    yield from sorted(path for path in root.rglob("*.properties") if "config" in path.name)


def model_configs(root: Path) -> Iterator[Path]:
    """Yield the files of the kind model-config.yaml, recognised by their name or their keys, in order."""
    for path in sorted([*root.rglob("*.yaml"), *root.rglob("*.yml")]):
        named = path.name.replace("_", "-").endswith("model-config.yaml") or "modelConfig" in path.parts
        if named or _MODEL_KEYS & set(_top_keys(path)):
            yield path


def _top_keys(path: Path) -> list[Any]:
    try:
        document = yaml.safe_load(path.read_bytes())
    except (yaml.YAMLError, ValueError):  # templates of Helm, and files that are broken on purpose
        return []
    return list(document) if isinstance(document, dict) else []
