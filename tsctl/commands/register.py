"""`tsctl register`."""

import contextlib
from pathlib import Path
from typing import Any

import click

from tsctl.client import DaemonClient
from tsctl.completion import complete_archive
from tsctl.errors import CliError
from tsctl.options import json_option, model_parameters, register_options
from tsctl.progress import warn, work
from tsctl.serving.failures import explained, folder_of, is_taken
from tsctl.serving.requests import ARCHIVE_NOT_FOUND, not_found, parameters_of, registered_target
from tsctl.streams import echo, echo_json
from tsctl.terminal.registered import show_registered, starting_line, url_of
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@click.argument("archive", shell_complete=complete_archive)
@register_options
@click.option("--name", metavar="NAME", help="Register under this name instead of the archive's.")
@click.option("--version", metavar="VERSION", help="Of a file, its version; of an archive, the only one to accept.")
@click.option("--handler", metavar="HANDLER", help="Use this handler instead of the archive's.")
@click.option("--replace", is_flag=True, help="Replace the version if already registered, see above.")
@click.option("--reset", is_flag=True, help="With --replace: keep no setting of the registered version.")
@click.option("--no-wait", is_flag=True, help="Return at once; a model that fails to load stays listed.")
@json_option
@click.pass_obj
def command(
    socket: Path | None,
    /,
    archive: str,
    name: str | None,
    version: str | None,
    handler: str | None,
    replace: bool,
    reset: bool,
    no_wait: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Register ARCHIVE and start its workers.

    ARCHIVE is a .mar, a .tar.gz, a directory, or a file that is served in place: handler.py,
    handler.py:FUNCTION, a model (.pt, .pt2, .onnx), or weights (.pth) with their model file beside
    them. An existing path, or else a name in the model store; or MODULE:ATTRIBUTE.
    A file is version 1.0, unless --version says another.

    Waits until every worker is ready. If the handler fails to load, prints why and registers
    nothing: of an archive the traceback, of a file the line.

    \b
    Batching (--batching):
      auto     waits only where measured to pay, for at most --max-delay
      fixed    an idle worker takes one request and waits --max-delay for more
      greedy   an idle worker takes all waiting requests at once

    \b
    Optimizations (--optimize, comma separated):
      channels_last         channels-last memory format
      fold                  batch normalisation folded into convolutions
      fast_images           images are resized as bytes
      scaled_decode         large JPEGs are decoded at a part of their size
      bf16                  bfloat16, where the hardware has a fast path for it
      int8                  8-bit integers instead, on processors with VNNI
      compile               torch.compile, for every batch size before readiness
      onnxruntime           exported to ONNX, and run by ONNX Runtime
      graph                 a CUDA graph for each batch size, on GPUs
      none                  no optimization

    The default of the built-in image handlers is channels_last,fold,fast_images; on a GPU graph, too.
    Each is compared with the model without; `tsctl describe` shows the drift of the answers. A default
    that drifts is left out.

    With --replace, the registered version serves until every worker of the new archive is ready;
    then new requests go to the new workers, and the old workers finish their requests. No request
    fails. If the new archive fails to load, the old one keeps serving. Settings that were given to
    `register`, `set` or `scale` before are kept, unless given again; --reset drops them.

    Settings without an option here come from the archive's model-config.yaml, then from the defaults.
    """
    if reset and not replace:
        raise click.UsageError("`--reset` takes `--replace`: only a replacement has settings to reset")
    target = registered_target(archive, Path.cwd())
    given = {"model_name": name, "model_version": version, "handler": handler}
    client = DaemonClient(socket)
    try:
        document = work(
            client,
            "POST",
            "/models",
            subject=archive.rpartition("/")[2],
            hint="`tsctl describe` shows its progress"
            if replace
            else "`tsctl ls` shows it, `tsctl unregister` undoes it",
            **parameters_of(target) | {name: value for name, value in given.items() if value is not None},
            replace="true" if replace else None,
            reset="true" if reset else None,
            synchronous="false" if no_wait else "true",
            **model_parameters(settings),
        )
    except CliError as error:
        if target.kind == "archive" and target.path is None and error.kind == ARCHIVE_NOT_FOUND:
            raise not_found(error, archive, Path.cwd(), client) from None
        if is_taken(error) and not replace:
            hint = "`--replace` replaces it, and no request fails; `--name` registers another model beside it"
            raise CliError(error.message, hint) from None
        if not target.inferred:  # of an archive, whose author may be another: the whole traceback
            raise
        raise explained(error, name or target.model_name, folder_of(target), archive) from None
    if no_wait:  # TorchServe's sentence does not name the model
        document["status"] = starting_line(document["modelName"], document["modelVersion"])
    with contextlib.suppress(CliError):  # what is registered is registered, whatever its URL is
        document["url"] = url_of(client, document["modelName"], document["modelVersion"])
    if as_json:
        echo_json(document)
        return
    echo(document["status"])
    warn(document)
    show_registered(document)
