"""Documented `torch-model-archiver …` commands, and where their files are in a checkout."""

import argparse
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.lab.torchserve.checkout import pages
from tests.lab.torchserve.documented import commands

PROGRAM = "torch-model-archiver"


class Archive(NamedTuple):
    """What one command packs: its place, and its options as they are documented.

    Attributes:
        name: page and line, and the model's name.
        page: the file that documents the command.
        files: option → path, of those that name one file.
        extra: the files of `--extra-files`.
    """

    name: str
    page: Path
    model: str
    version: str
    handler: str
    files: dict[str, str]
    extra: tuple[str, ...]
    runtime: str
    form: str


class Found(NamedTuple):
    """The files of an archive that the checkout has, and the names of those that it has not.

    Attributes:
        handler: a built-in handler's name, or a path, perhaps with `:FUNCTION`.
    """

    handler: str
    files: dict[str, Path]
    extra: tuple[Path, ...]
    missing: tuple[str, ...]


_ONE_FILE = ("model-file", "serialized-file", "config-file", "requirements-file")


def archives(root: Path) -> Iterator[Archive]:
    """Yield the archives that the examples document."""
    for page in pages(root / "examples"):
        for each in commands(page, PROGRAM):
            archive = parse(f"{page.relative_to(root)}:{each.line}", page, each.words)
            if archive is not None:
                yield archive


def parse(place: str, page: Path, words: Sequence[str]) -> Archive | None:
    """Return what a command packs; None if its words are no such command, or only a pattern of one."""
    try:
        given, unknown = _parser().parse_known_args(list(words))
    except argparse.ArgumentError:
        return None
    if (
        unknown
        or not (given.model_name and given.handler)
        or given.model_name == "PLACEHOLDER"
        or "$" in given.model_name
    ):
        return None
    files = {name: expanded(page, text) for name in _ONE_FILE if (text := getattr(given, name.replace("-", "_")))}
    extra = tuple(expanded(page, text.strip()) for text in given.extra_files.split(",") if text.strip())
    return Archive(
        f"{place} {given.model_name}", page, given.model_name, given.version, given.handler, files, extra,
        given.runtime, given.archive_format,
    )  # fmt: skip


def expanded(page: Path, text: str) -> str:
    """Return a word of a command with the variables that the page assigns as plain text, in shell's words."""
    if "$" not in text:
        return text
    assigned = dict(re.findall(r'^(\w+)="([^"$]*)"', page.read_text(errors="replace"), re.MULTILINE))
    return re.sub(r"\$(\w+)", lambda match: assigned.get(match[1], match[0]), text)


@cache
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(exit_on_error=False, add_help=False)
    for option in ("--model-name", "--handler", "--export-path", *(f"--{name}" for name in _ONE_FILE[:2])):
        parser.add_argument(option)
    parser.add_argument("-v", "--version", default="1.0")
    parser.add_argument("-c", "--config-file")
    parser.add_argument("-r", "--requirements-file")
    parser.add_argument("-f", "--force", action="store_true")
    parser.add_argument("--extra-files", default="")
    parser.add_argument("--runtime", default="python")
    parser.add_argument("--archive-format", default="default")
    parser.add_argument("rest", nargs="*")
    return parser


def locate(archive: Archive, root: Path) -> Found:
    """Return where the archive's files are in the checkout."""
    handler, missing = archive.handler, []
    file, colon, function = handler.partition(":")
    if file.endswith(".py"):
        path = find(file, archive.page.parent, root)
        if path is None:
            missing.append(file)
        else:
            handler = f"{path}{colon}{function}"
    files, extra = {}, []
    for option, text in archive.files.items():
        path = find(text, archive.page.parent, root)
        if path is None:
            missing.append(text)
        else:
            files[option] = path
    for text in archive.extra:
        path = find(text, archive.page.parent, root)
        if path is None:
            missing.append(text)
        else:
            extra.append(path)
    return Found(handler, files, tuple(extra), tuple(missing))


def written(page: Path, name: str) -> str | None:
    """Return the text of a file that a page has its reader write with `echo "…" > FILE`; None if it does not."""
    match = re.search(
        rf'echo "([^"]*)" > (?:\S*/)?{re.escape(Path(name).name)}(?!\S)', page.read_text(errors="replace")
    )
    return match[1] if match else None


def find(text: str, folder: Path, root: Path) -> Path | None:
    """Return the file that a page means: relative to its folder, to one above it, or to a checkout called `serve`."""
    inside = text.removeprefix("./").removeprefix("serve/")
    above = [each for each in (folder, *folder.parents) if each.is_relative_to(root)]
    tried = [each / text for each in above] + [root / inside, folder / Path(text).name]
    return next((path.resolve() for path in tried if path.exists()), None)
