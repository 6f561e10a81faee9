"""`tsctl demo`."""

import click

from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
def command() -> None:
    """Show batching and recovery with a small model, in under a minute.

    Runs a private daemon, which listens on no port, and measures a network that reads handwritten
    digits: answers per second in ones and in batches. Then kills the worker, replaces the model and
    upgrades the daemon while clients ask, and counts failed requests. Ends with exit code 1 if one
    failed. Everything is stopped at the end and on Ctrl-C.
    """
    import signal

    from tsctl.showcase.story import play

    # A shell that starts this in the background has SIGINT ignored; the daemon and its folder shall go all the same.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    play()
