"""`tsctl register`."""

from pathlib import Path
from typing import Any

import click

from tsctl.client import Client
from tsctl.completion import complete_archive
from tsctl.follow import warn, work
from tsctl.options import model_parameters, register_options


@click.command
@click.argument("archive", shell_complete=complete_archive)
@register_options
@click.option("--model-name", metavar="NAME", help="Register under this name instead of the archive's.")
@click.option("--handler", metavar="HANDLER", help="Use this handler instead of the archive's.")
@click.option("--replace", is_flag=True, help="Take the place of that version if it is registered, see above.")
@click.option("--no-wait", is_flag=True, help="Return at once; a model that fails to load stays listed.")
@click.pass_obj
def command(
    socket: Path | None,
    /,
    archive: str,
    model_name: str | None,
    handler: str | None,
    replace: bool,
    no_wait: bool,
    **settings: Any,
) -> None:
    """Register ARCHIVE and start its workers.

    ARCHIVE is a .mar, a .tar.gz or a directory: a path that exists, or else a name in the model
    store. Waits until every worker is ready; if the handler fails to load, prints its traceback
    and leaves nothing registered.

    \b
    Batching:
      auto     waits only where it has learned that waiting pays, at most --max-delay
      fixed    an idle worker takes the first request and waits up to --max-delay for more
      greedy   an idle worker takes whatever waits, at once

    \b
    Optimizing, names with commas between them:
      channels_last, fold   another memory order; batch normalisation within convolutions
      fast_images           images are resized as bytes
      bf16                  16-bit numbers, where processor or GPU has a fast path for them
      compile               torch.compile, every batch size before the model is ready
      none                  not even what the built-in image handlers have by default, the first three
    Each is checked against the plain model; `tsctl describe` shows how far the answers drift.

    With --replace, a version of that name that serves goes on until every worker of the new one is
    ready; then requests go to the new one, and the old one finishes what it has. No request fails.
    If the new one fails to load, the old one stays. Nothing that was set or scaled since is carried
    over, but for the number of workers where neither --workers nor the archive names one.

    What is not given here comes from the archive's model-config.yaml, or is the default.
    """
    path = Path(archive).expanduser()
    document = work(
        Client(socket),
        "POST",
        "/models",
        subject=path.name,
        hint="`tsctl describe` shows how far it is" if replace else "`tsctl ls` shows it, `tsctl unregister` undoes it",
        url=str(path.absolute()) if path.exists() else archive,
        fallback_workers=1,
        model_name=model_name,
        handler=handler,
        replace="true" if replace else None,
        synchronous="false" if no_wait else "true",
        **model_parameters(settings),
    )
    click.echo(document["status"])
    warn(document)
