"""Compile the modules on the path of a request, when a wheel is built: a hook for hatch; the daemon never imports this.

mypyc makes C extensions of the modules that pyproject.toml names. Their sources go into the wheel, too, and run where
nothing was compiled: without a C compiler, or in an editable installation, where changes have to run at once.
The environment variable TSCTL_COMPILE decides otherwise: `1` makes a failed compilation an error, `0` does
not compile.

mypyc requires of these modules: types that are true at run time, too; no class that an interpreted one inherits from;
no function within a function on the path of a request, for each is a cycle until the collector runs.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GROUP = "tsctl_compiled"  # all in one library, so that calls from one module to another are calls of C functions
# Only the named modules are checked: the others' libraries need not be installed.
MYPY = ("--follow-imports=silent", "--ignore-missing-imports")


class CompileHook(BuildHookInterface[Any]):
    """Adds the extensions to the wheel. Its configuration: `modules`, paths from the project's folder."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        wanted = os.environ.get("TSCTL_COMPILE", "")
        if wanted == "0" or (version == "editable" and wanted != "1"):
            return
        self._folder = tempfile.TemporaryDirectory(prefix="tsctl-build-")
        into = Path(self._folder.name)
        try:
            compile_modules(self.config["modules"], into)
        except (Exception, SystemExit) as error:  # whatever a compiler that is not there leads to; mypyc exits
            if wanted == "1":
                raise
            self.app.display_warning(f"tsctl will serve about a third fewer requests: nothing was compiled: {error}")
            return
        built = sorted((into / "lib").rglob("*.so"))
        build_data["force_include"] |= {str(file): str(file.relative_to(into / "lib")) for file in built}
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def compile_modules(modules: Sequence[str], into: Path) -> None:
    """Compile these sources, from the project's folder; the extensions are in `into`/lib, by their packages.

    Raises:
        SystemExit: mypyc rejects a module.
        Exception: the compiler is missing or fails.
    """
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    extensions = mypycify([*MYPY, *modules], opt_level="3", target_dir=str(into / "c"), group_name=GROUP)
    command = build_ext(Distribution({"name": "tsctl", "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(into / "lib"), str(into / "objects")
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    command.run()


if __name__ == "__main__":  # python hatch_build.py FOLDER MODULE …: to see mypyc's messages
    compile_modules(sys.argv[2:], Path(sys.argv[1]))
