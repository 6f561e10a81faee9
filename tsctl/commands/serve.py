"""`tsctl serve`."""

from pathlib import Path
from typing import Any

import click

from tsctl.errors import CliError
from tsctl.options import host_option, model_parameters, port_option, register_options
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True, type=click.Path())
@click.option("--name", metavar="NAME", help="The model's name [default: inferred from TARGET].")
@click.option("--handler", metavar="HANDLER", help="The handler [default: TARGET, or base_handler for a model file].")
@click.option("--watch", is_flag=True, help="Serve the files anew whenever they are saved.")
@host_option
@port_option
@register_options
@click.pass_obj
def command(
    socket: Path | None,
    /,
    targets: tuple[str, ...],
    name: str | None,
    handler: str | None,
    watch: bool,
    host: str | None,
    port: int | None,
    **settings: Any,
) -> None:
    """Serve TARGETs until Ctrl-C.

    \b
    TARGET:
      handler.py                  a class, or a function such as `predict`
      handler.py:FUNCTION         one of several functions
      MODULE:ATTRIBUTE            a handler in a package
      model.pt, .pt2, .onnx       a whole model; .pt is TorchScript
      weights.pth                 weights; the .py file of their module is beside
      DIRECTORY, MODEL.mar, URL   an archive, unpacked or not

    Starts a daemon of its own, at 127.0.0.1:8080, that ends with this command. If one is running already,
    registers with that one, and unregisters at the end. Prints a `curl` command that asks the model,
    then the model's output.

    With --watch, a saved file is served at once; no request fails. A file that does not load is told
    once, and the version before it goes on serving.
    """
    if settings.get("workers") == "0":
        raise CliError(
            "with `--workers 0` nothing would answer",
            "leave it out, or load with the first request: `--loading on_demand`",
        )
    from tsctl.serving.foreground import serve

    serve(socket, targets, model_parameters(settings), name=name, handler=handler, watch=watch, host=host, port=port)
