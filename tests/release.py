"""Checks that a release is ready: `python -m tests.release v1.2.3` prints what is missing, and exits with 1."""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
ADDRESSES = ("Source", "Documentation", "Changelog", "Issues")


def missing(tag: str, project: Mapping[str, Any], changelog: str) -> Iterator[str]:
    """Return what stands in the way, one sentence each.

    Args:
        tag: the git tag, `v` and the version.
        project: the table `project` of pyproject.toml.
        changelog: the text of CHANGELOG.md.
    """
    version = project["version"]
    if tag != f"v{version}":
        yield f"The tag is `{tag}`, and pyproject.toml has version {version}: expected `v{version}`."
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        yield f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`."
    if "## [Unreleased]" not in changelog:
        yield "CHANGELOG.md has no section `## [Unreleased]` for what comes next."
    for name in ADDRESSES:
        if not str(project.get("urls", {}).get(name, "")).startswith("https://"):
            yield f"pyproject.toml has no https address `{name}` in [project.urls]."


def main(arguments: list[str]) -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = list(missing("".join(arguments), project, (ROOT / "CHANGELOG.md").read_text()))
    print("\n".join(found) or "Ready.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
