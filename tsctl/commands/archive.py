"""`tsctl archive`."""

from pathlib import Path
from typing import Any

import click

from tsctl.completion import complete_file
from tsctl.daemon.marfile import FORMATS, PackError, Packing, write_archive
from tsctl.daemon.targets import ServeTarget, folders_named, local_files, opened_by, split_function
from tsctl.errors import CliError
from tsctl.render import bytes_text, live
from tsctl.serving.requests import checked_target
from tsctl.streams import echo
from tsctl.terminal.verb import Verb

_FILE = click.Path(path_type=Path)


class _Runtime(click.Choice[str]):
    """The runtimes that are served; a refusal of torch-model-archiver's other one names the way forward."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "LSP":
            self.fail("`LSP` handlers are C++, which is not served here; write the handler in Python", param, ctx)
        return super().convert(value, param, ctx)


_NAMED = 4  # files in a sentence
_LABELS = "index_to_name.json"  # of the built-in handlers
_IMAGES = ("config.json", "preprocessor_config.json")  # timm's and Hugging Face's, which these handlers read
_READ_IMAGES = ("image_classifier", "image_segmenter")


@click.command(cls=Verb)
@click.argument("target", required=False, type=click.Path())
@click.option(
    "--name", "--model-name", "model_name", metavar="NAME", help="The model's name: letters, digits, `_`, `-`, `.`."
)
@click.option("-v", "--version", metavar="VERSION", help="The model's version, such as 1.0.")
@click.option(
    "--handler",
    metavar="HANDLER",
    shell_complete=complete_file,
    help="A built-in handler, FILE.py or FILE.py:FUNCTION.",
)
@click.option("--model-file", type=_FILE, help="Python file with the model's one torch.nn.Module class.")
@click.option("--serialized-file", type=_FILE, help="Weights (state_dict), TorchScript (.pt) or torch.export (.pt2).")
@click.option(
    "--extra-files",
    default="",
    metavar="FILES",
    shell_complete=complete_file,
    help="Further files and directories, comma separated.",
)
@click.option("-r", "--requirements-file", type=_FILE, help="The model's own Python dependencies.")
@click.option("-c", "--config-file", type=_FILE, help="model-config.yaml.")
@click.option("--runtime", type=_Runtime(["python", "python3"]), default="python", show_default=True)
@click.option("--export-path", type=_FILE, default=Path(), help="Directory for the archive [default: this one].")
@click.option("--archive-format", type=click.Choice(FORMATS), default="default", show_default=True)
@click.option("-f", "--force", is_flag=True, help="Replace an archive that exists.")
def command(
    target: str | None,
    model_name: str | None,
    version: str | None,
    handler: str | None,
    model_file: Path | None,
    serialized_file: Path | None,
    extra_files: str,
    requirements_file: Path | None,
    config_file: Path | None,
    runtime: str,
    export_path: Path,
    archive_format: str,
    force: bool,
) -> None:
    """Pack a model into an archive. The options are those of torch-model-archiver.

    With TARGET, a handler (handler.py) or a model file as for `tsctl serve`, name, version, handler and
    files are inferred. What a Python file imports from its folder, or opens there, is packed, too. An option
    wins over the inferred value. Without TARGET, --name, --version and --handler are needed.

    The content of a directory of --extra-files is at the root of the archive, unless the handler, or
    `warmup` of the configuration, names the directory.

    \b
    Formats:
      default      MODEL.mar, a zip file; weights are stored uncompressed
      zip-store    MODEL.mar, a zip file without compression
      tgz          MODEL.tar.gz
      no-archive   a directory
    """
    found = None if target is None else _packable(target)
    if found is None and not (model_name and version and handler):
        given = {"--name": model_name, "--version": version, "--handler": handler}
        raise click.UsageError(f"Missing TARGET, or {', '.join(name for name, value in given.items() if not value)}.")
    inferred = {} if found is None else _inferred(found)
    said = {
        "model_name": model_name, "version": version, "handler": handler, "model_file": model_file,
        "serialized_file": serialized_file, "config_file": config_file,
    }  # fmt: skip
    packing = Packing(
        **inferred | {name: value for name, value in said.items() if value is not None},
        extra_files=",".join(filter(None, (extra_files, *_beside(found, handler)))),
        kept=_kept(
            extra_files, handler or str(inferred.get("handler", "")), config_file or inferred.get("config_file")
        ),
        requirements_file=requirements_file,
        runtime=runtime,
    )
    with live() as progress:

        def show(done: int, total: int) -> None:
            progress.show(f"packing {packing.model_name}, {bytes_text(done)} of {bytes_text(total)}", done, total)

        try:
            archive = write_archive(packing, export_path, archive_format=archive_format, force=force, progress=show)
        except PackError as error:
            raise CliError(str(error)) from None
        except OSError as error:
            raise CliError(f"cannot write the archive: {error}") from None
    echo(f"Packed `{packing.model_name}` {packing.version}{_further(packing)}", err=True)
    echo(str(archive))


def _packable(text: str) -> ServeTarget:
    """Read a target whose files can be packed.

    Raises:
        CliError: the target is an archive already, a URL or a module, or cannot be served.
    """
    target = checked_target(text, Path.cwd())
    if target.kind not in ("handler", "model"):
        raise CliError(f"`{text}` is not a handler or a model file", "name a file, such as handler.py or model.pt")
    return target


def _inferred(target: ServeTarget) -> dict[str, Any]:
    assert target.path is not None
    folder = target.path.parent

    def beside(name: str | None) -> Path | None:
        return None if name is None else folder / name

    starts = [target.path, beside(target.model_file)]
    files = [file for start in starts if start is not None and start.suffix == ".py" for file in local_files(start)]
    config = beside(target.config_file)
    opened = opened_by(files, folder, config)
    if opened.outside:
        path, source = next(iter(opened.outside.items()))
        raise CliError(
            f"`{source.name}` names `{path}`, which is not below its folder, so that an archive cannot hold it",
            f"move it into `{folder}`, and name it from there",
        )
    named = (target.path, beside(target.model_file), beside(target.serialized_file))
    return {
        "model_name": target.model_name,
        "version": target.version,
        "handler": str(folder / target.handler) if target.kind == "handler" else target.handler,
        "model_file": beside(target.model_file),
        "serialized_file": beside(target.serialized_file),
        "config_file": config,
        "beside": {
            name: file
            for name, file in ({each.relative_to(folder).as_posix(): each for each in files} | opened.files).items()
            if file not in (*named, config)
        },
    }


def _beside(target: ServeTarget | None, handler: str | None) -> list[str]:
    """Return the paths of the files beside a target that the built-in handler reads."""
    if target is None or target.path is None:
        return []
    names = (_LABELS, *_IMAGES) if (handler or target.handler) in _READ_IMAGES else (_LABELS,)
    return [str(file) for name in names if (file := target.path.with_name(name)).is_file()]


def _kept(extra_files: str, handler: str, config: Path | None) -> frozenset[str]:
    """Return the names of the extra directories that stay directories, because the handler's files name them."""
    folders = [path for each in extra_files.split(",") if each and (path := Path(each)).is_dir()]
    file = Path(split_function(handler)[0])
    sources = local_files(file) if file.suffix == ".py" and file.is_file() else []
    return frozenset(folders_named(sources, config, folders))


def _further(packing: Packing) -> str:
    """Return the end of the sentence: what the handler or the model opens, and is packed, too."""
    names = [name for name in (*packing.beside, *packing.weights()) if not name.endswith(".py")]
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f", with {', '.join(f'`{each}`' for each in names[:_NAMED])}{more}"
