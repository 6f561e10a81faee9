"""Put the compiled modules of .whl/ beside the sources, the version into SITE: `python3 -m tests.lab.gpu.unpack SITE`.

Compiled modules win over the sources beside them. So nothing is unpacked that another Python, or other sources, made.
Modules that are not compiled may have changed since.
"""

import os
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.places import ROOT

REMEDY = "write .whl anew, where there is a package index: `python -m tests.lab gpu-pack`"


def refusal(wheel: Path | None, tree: Path, suffix: str) -> str:
    """Return why a wheel's modules cannot run here; empty if they can.

    Args:
        wheel: None if there is none.
        suffix: of the modules that this Python imports: `.cpython-312-x86_64-linux-gnu.so`.
    """
    if wheel is None:
        return f"there is no wheel of tsctl in .whl: {REMEDY}"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        sources = sorted({f"{name.removesuffix(suffix)}.py" for name in names if name.endswith(suffix)} & names)
        if not sources:
            return f"`{wheel.name}` has no modules for this Python, which imports `{suffix}`: {REMEDY}"
        for name in sources:
            source = tree / name
            if not source.is_file() or source.read_bytes() != archive.read(name):
                return f"`{wheel.name}` was made of other sources, `{name}` differs: {REMEDY}"
    return ""


def unpack(wheel: Path, tree: Path, site: Path) -> None:
    """Extract the compiled modules into the tree, and what Python knows of an installation into `site`.

    A module that is there is replaced, and not written over: a process that has mapped the file would crash.
    """
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory(dir=tree, prefix=".unpacked-") as drafts:
        names = archive.namelist()
        for name in names:
            if name.endswith(".so"):
                os.replace(archive.extract(name, drafts), tree / name)
        archive.extractall(site, [name for name in names if name.partition("/")[0].endswith(".dist-info")])


def main(arguments: Sequence[str]) -> int:
    wheel = next((ROOT / ".whl").glob("tsctl-*.whl"), None)
    reason = refusal(wheel, ROOT, sysconfig.get_config_var("EXT_SUFFIX"))
    if wheel is None or reason:
        print(reason, file=sys.stderr)
        return 1
    unpack(wheel, ROOT, Path(arguments[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
