"""`tsctl new`."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click

from tsctl.daemon.targets import bare_target
from tsctl.errors import CliError
from tsctl.render import live
from tsctl.streams import echo
from tsctl.terminal.verb import Verb

TEMPLATES = Path(__file__).parent.parent / "templates"
# kind → (help, the script of the project that makes what is not copied, the sample)
KINDS: dict[str, tuple[str, str, str]] = {
    "function": ("One function of rows of numbers, sent as JSON [default].", "", "sample.json"),
    "text": ("A class that loads once, and takes texts.", "", "sample.txt"),
    "image": ("One function of images.", "make_sample.py", "sample.png"),
    "torchscript": ("A class that loads a TorchScript file, which is made here, too.", "make_model.py", "sample.json"),
}


@click.command(cls=Verb)
@click.argument("directory", metavar="NAME", type=click.Path(path_type=Path))
@click.option("--function", is_flag=True, help=KINDS["function"][0])
@click.option("--text", is_flag=True, help=KINDS["text"][0])
@click.option("--image", is_flag=True, help=KINDS["image"][0])
@click.option("--torchscript", is_flag=True, help=KINDS["torchscript"][0])
def command(directory: Path, **asked: bool) -> None:
    """Write a handler, a sample input and a test into a new directory NAME.

    The test passes and the handler serves as they are; edit them. Nothing that exists is changed.
    """
    kind, *more = [each for each in KINDS if asked[each]] or ["function"]
    if more:
        raise click.UsageError(f"only one of `--{kind}` and `--{more[0]}` can be given")
    _, script, sample = KINDS[kind]
    _copy(TEMPLATES / kind, directory)
    if script:
        _make(directory, script)
    written = ", ".join(sorted(file.name for file in directory.iterdir() if file.is_file()))
    echo(f"Wrote `{directory}`: {written}\nNext:", err=True)
    name = bare_target((directory / "handler.py").absolute()).model_name
    for line in (
        f"cd {shlex.quote(str(directory))}",
        f"tsctl check handler.py {sample}",
        "pytest",
        "tsctl serve handler.py --watch",
        f"curl http://127.0.0.1:8080/predictions/{name} -T {sample}",
    ):
        echo(f"  {line}")


def _copy(template: Path, directory: Path) -> None:
    """Copy the files of a template into a new directory.

    Raises:
        CliError: the directory exists, or cannot be written.
    """
    try:
        directory.mkdir()
        for file in template.iterdir():
            if file.is_file():
                shutil.copyfile(file, directory / file.name)
    except FileExistsError:
        raise CliError(f"`{directory}` exists already", "choose another name; `tsctl new` changes no file") from None
    except FileNotFoundError:
        raise CliError(
            f"there is no directory `{directory.parent}`", f"make it with `mkdir -p {directory.parent}`"
        ) from None
    except OSError as error:
        raise CliError(f"cannot write `{directory}`: {error.strerror}") from None


def _make(directory: Path, script: str) -> None:
    """Run a script of the new project, in a process of its own.

    Raises:
        CliError: the script failed.
    """
    with live() as progress:
        progress.show(f"running {script}")
        done = subprocess.run([sys.executable, script], cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        raise CliError(
            f"`{script}` ended with exit code {done.returncode}", f"mend it, and run it in `{directory}`", done.stderr
        )
