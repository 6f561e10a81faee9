"""A checkout of TorchServe's repository: where it is, and which commit it is."""

import os
import subprocess
from pathlib import Path

from tests.environments import Missing

VARIABLE = "TORCHSERVE_CHECKOUT"
COMMIT = "TORCHSERVE_COMMIT"  # for a checkout without .git, as `git archive` makes one


def checkout() -> Path:
    """Return the checkout's root.

    Raises:
        Missing: the variable names none.
    """
    text = os.environ.get(VARIABLE, "")
    root = Path(text)
    if not text or not (root / "test" / "pytest").is_dir():
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
