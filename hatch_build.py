"""Compile the modules on the path of a request, when a wheel is built: a hook for hatch; the daemon never imports this.

mypyc makes C extensions of the modules that pyproject.toml names. Their sources go into the wheel, too, and run where
nothing was compiled: without a C compiler, or in an editable installation, where changes have to run at once.
The environment variable TSCTL_COMPILE decides otherwise: `1` makes a failed compilation an error, `0` does
not compile.

The C compiler gets a file for each module, and as many files at a time as there are processors. As one file, which is
mypyc's default, all of it took one processor for minutes.

mypyc requires of these modules: types that are true at run time, too; no class that an interpreted one inherits from;
no error of the daemon with a `status` of its own, which would be the base's; no function within a function on the
path of a request, for each is a cycle until the collector runs.
"""

import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LINKED = ("daemon", "handlers")  # folders of the project that are imported from within `tsctl`
EXTENSIONS = "tsctl/daemon/extensions"
GROUP = "tsctl_compiled"  # all in one library, so that calls from one module to another are calls of C functions
# Only the named modules are checked, and of libraries only TYPED is known: where torch is installed, pip hides it from
# imports, but not from mypy, which reads all of its types for a minute and a half.
MYPY = ("--follow-imports=silent", "--ignore-missing-imports", "--no-site-packages")
TYPED = "msgspec"
# By default other libraries may replace a function, so that no call of it is inlined, and each goes through a table.
DIRECT_CALLS = "-fvisibility=hidden"
TERMINAL = Path("/dev/tty")


class CompileHook(BuildHookInterface[Any]):
    """Adds the extensions to the wheel. Its configuration: `modules`, paths from the project's folder."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        link_folders(Path(self.root))
        wanted = os.environ.get("TSCTL_COMPILE", "")
        if wanted == "0" or (version == "editable" and wanted != "1"):
            return
        self._folder = tempfile.TemporaryDirectory(prefix="tsctl-build-")
        into = Path(self._folder.name)
        modules = with_extensions(self.config["modules"], Path(self.root))
        self._tell(f"compiling {len(modules)} modules, {processors()} at a time, for about a minute on two processors")
        try:
            compile_modules(modules, into)
        except (Exception, SystemExit) as error:  # whatever a compiler that is not there leads to; mypyc exits
            self._folder.cleanup()
            if wanted == "1":
                raise
            self._tell(f"tsctl will serve about a third fewer requests: nothing was compiled: {error}")
            return
        built = sorted((into / "lib").rglob("*.so"))
        build_data["force_include"] |= {str(file): str(file.relative_to(into / "lib")) for file in built}
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def _tell(self, line: str) -> None:
        """Print a line, on the terminal, too: pip shows what a build prints only with `-v`."""
        self.app.display_warning(line)
        if not sys.stderr.isatty():
            with suppress(OSError), TERMINAL.open("w") as terminal:  # there may be none
                terminal.write(f"\n{line}\n")


def link_folders(root: Path) -> None:
    """Make the links that git has in `tsctl`, where an archive of the sources has lost them."""
    for name in LINKED:
        link = root / "tsctl" / name
        if not link.is_dir():
            link.unlink(missing_ok=True)  # in a zip archive it is a text
            link.symlink_to(f"../{name}")


def with_extensions(modules: Sequence[str], root: Path) -> list[str]:
    """Return these modules, and those that extensions list: each has its own in a `compiled.txt`, if it has any."""
    found = list(modules)
    for file in sorted((root / EXTENSIONS).glob("*/compiled.txt")):
        found += [f"{EXTENSIONS}/{file.parent.name}/{name}" for name in file.read_text().split()]
    return found


def compile_modules(modules: Sequence[str], into: Path) -> None:
    """Compile these sources, from the project's folder; the extensions are in `into`/lib, by their packages.

    Raises:
        SystemExit: mypyc rejects a module.
        Exception: the compiler is missing or fails.
    """
    found = importlib.util.find_spec(TYPED)
    assert found is not None and found.origin is not None
    (into / "types").mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (into / "types" / TYPED).symlink_to(Path(found.origin).parent)
    os.environ["MYPYPATH"] = str(into / "types")

    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    class Build(build_ext):
        def build_extensions(self) -> None:
            with ThreadPoolExecutor(processors()) as pool:
                self.compiler.compile = side_by_side(self.compiler.compile, pool)
                super().build_extensions()

    extensions = mypycify(
        [*MYPY, *modules],
        opt_level="3",
        debug_level="0",
        multi_file=True,
        target_dir=str(into / "c"),
        group_name=GROUP,
    )
    for extension in extensions:
        extension.extra_compile_args = [*extension.extra_compile_args, DIRECT_CALLS]
    command = Build(Distribution({"name": "tsctl", "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(into / "lib"), str(into / "objects")
    command.parallel = processors()
    command.ensure_finalized()
    command.run()


def processors() -> int:
    return os.cpu_count() or 1


def side_by_side(compile_files: Callable[..., list[str]], pool: Executor) -> Callable[..., list[str]]:
    """Return what setuptools calls to compile an extension's sources, which takes them in turn, with a pool beneath."""

    def compile_each(sources: Sequence[str], **options: Any) -> list[str]:
        objects = pool.map(lambda source: compile_files([source], **options), sources)
        return [file for files in objects for file in files]

    return compile_each


if __name__ == "__main__":  # python hatch_build.py FOLDER MODULE …: to see mypyc's messages
    compile_modules(sys.argv[2:], Path(sys.argv[1]))
