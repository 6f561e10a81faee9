"""`tsctl register`."""

from pathlib import Path

import click

from tsctl.client import Client
from tsctl.completion import complete_archive
from tsctl.follow import warn, work


@click.command
@click.argument("archive", shell_complete=complete_archive)
@click.option("--batch-size", type=click.IntRange(min=1), metavar="N", help="Requests in one batch, at most.")
@click.option("--max-delay", type=click.FloatRange(min=0), metavar="MS", help="Milliseconds a batch waits to fill.")
@click.option("--batching", type=click.Choice(["auto", "fixed", "greedy"]), help="How batches are formed, see above.")
@click.option(
    "--workers", type=click.IntRange(min=0), metavar="N", help="Worker processes [default: the archive's, or 1]."
)
@click.option("--model-name", metavar="NAME", help="Register under this name instead of the archive's.")
@click.option("--handler", metavar="HANDLER", help="Use this handler instead of the archive's.")
@click.option("--response-timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="For one batch.")
@click.option("--startup-timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="For loading the model.")
@click.option(
    "--queue-timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="For waiting in the queue; 0 is no limit."
)
@click.option("--quarantine/--no-quarantine", default=None, help="Isolate requests that end workers; on by default.")
@click.option("--optimize", metavar="NAMES", help="Make the model faster, see above.")
@click.option("--replace", is_flag=True, help="Take the place of that version if it is registered, see above.")
@click.option("--max-memory", metavar="SIZE", help="Of each worker, such as 4GiB; one that passes it is replaced.")
@click.option("--cpus", metavar="LIST", help="Processors that the workers may use, such as 0-3 or 0,2.")
@click.option("--no-wait", is_flag=True, help="Return at once; a model that fails to load stays listed.")
@click.pass_obj
def command(
    socket: Path | None,
    archive: str,
    batch_size: int | None,
    max_delay: float | None,
    batching: str | None,
    workers: int | None,
    model_name: str | None,
    handler: str | None,
    response_timeout: float | None,
    startup_timeout: float | None,
    queue_timeout: float | None,
    quarantine: bool | None,
    optimize: str | None,
    replace: bool,
    max_memory: str | None,
    cpus: str | None,
    no_wait: bool,
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

    What is not given here comes from the archive's model-config.yaml, or is the default: batch
    size 1, delay 100 ms.
    """
    path = Path(archive).expanduser()
    document = work(
        Client(socket),
        "POST",
        "/models",
        subject=path.name,
        hint="`tsctl describe` shows how far it is" if replace else "`tsctl ls` shows it, `tsctl unregister` undoes it",
        url=str(path.absolute()) if path.exists() else archive,
        batch_size=batch_size,
        max_batch_delay=max_delay,
        batching=batching,
        initial_workers=workers,
        fallback_workers=1,
        model_name=model_name,
        handler=handler,
        response_timeout=response_timeout,
        startup_timeout=startup_timeout,
        queue_timeout=queue_timeout,
        quarantine=None if quarantine is None else str(quarantine).lower(),
        optimize=optimize,
        replace="true" if replace else None,
        max_memory=max_memory,
        cpus=cpus,
        synchronous="false" if no_wait else "true",
    )
    click.echo(document["status"])
    warn(document)
