"""`tsctl archive`."""

from pathlib import Path

import click

from daemon.marfile import FORMATS, PackError, Packing, write_archive
from tsctl.errors import CliError
from tsctl.render import bytes_text, live

_FILE = click.Path(path_type=Path)


@click.command
@click.option("--model-name", required=True, metavar="NAME", help="The model's name: letters, digits, `_`, `-`, `.`.")
@click.option("-v", "--version", required=True, metavar="VERSION", help="The model's version, such as 1.0.")
@click.option("--handler", required=True, metavar="HANDLER", help="A built-in handler, FILE.py or FILE.py:FUNCTION.")
@click.option("--model-file", type=_FILE, help="Python file with the model's one torch.nn.Module class.")
@click.option("--serialized-file", type=_FILE, help="Weights (state_dict), TorchScript (.pt) or torch.export (.pt2).")
@click.option("--extra-files", default="", metavar="FILES", help="Further files and directories, comma separated.")
@click.option("-r", "--requirements-file", type=_FILE, help="The model's own Python dependencies.")
@click.option("-c", "--config-file", type=_FILE, help="model-config.yaml.")
@click.option("--runtime", type=click.Choice(["python", "python3"]), default="python", show_default=True)
@click.option("--export-path", type=_FILE, default=Path(), help="Directory for the archive [default: this one].")
@click.option("--archive-format", type=click.Choice(FORMATS), default="default", show_default=True)
@click.option("-f", "--force", is_flag=True, help="Replace an archive that exists.")
def command(
    model_name: str,
    version: str,
    handler: str,
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

    \b
    Formats:
      default      MODEL.mar, a zip file; weights are stored uncompressed
      zip-store    MODEL.mar, a zip file without compression
      tgz          MODEL.tar.gz
      no-archive   a directory
    """
    packing = Packing(
        model_name=model_name,
        version=version,
        handler=handler,
        model_file=model_file,
        serialized_file=serialized_file,
        extra_files=extra_files,
        requirements_file=requirements_file,
        config_file=config_file,
        runtime=runtime,
    )
    with live() as progress:

        def show(done: int, total: int) -> None:
            progress.show(f"packing {model_name}, {bytes_text(done)} of {bytes_text(total)}", done, total)

        try:
            target = write_archive(packing, export_path, archive_format=archive_format, force=force, progress=show)
        except PackError as error:
            raise CliError(str(error)) from None
        except OSError as error:
            raise CliError(f"cannot write the archive: {error}") from None
    click.echo(f"Packed `{model_name}` {version}", err=True)
    click.echo(target)
