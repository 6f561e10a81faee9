"""`tsctl`: the root command, and a table of its verbs. A verb's module is imported only when it runs."""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from tsctl.errors import CliError, Interrupted
from tsctl.streams import FULL, echo, prepare, shown
from tsctl.terminal.help import ALL, HelpCommand, HelpContext

# verb → (group in the help, one line). The command of `verb` is `command` in tsctl/commands/VERB.py, with _ for -.
# Extensions add verbs of their own: `all_verbs`.
VERBS: dict[str, tuple[str, str]] = {
    "serve": ("Models", "Serve a handler or a model from its file, until Ctrl-C."),
    "new": ("Models", "Write a handler, a sample input and a test."),
    "check": ("Models", "Load an archive without a daemon and report the result."),
    "archive": ("Models", "Pack a model into a .mar archive."),
    "register": ("Models", "Register a model and start its workers."),
    "unregister": ("Models", "Unregister a model."),
    "ls": ("Models", "List the registered models."),
    "describe": ("Models", "Show everything about a model."),
    "predict": ("Models", "Send an input to a model and print the answer."),
    "bench": ("Models", "Load-test a model: measure latency and throughput."),
    "scale": ("Models", "Change the number of workers of a model."),
    "set": ("Models", "Change settings of a model while it serves."),
    "restart": ("Models", "Start a model's workers anew; no request fails."),
    "retry": ("Models", "Retry a failed model."),
    "load": ("Models", "Load a model that is not in memory."),
    "unload": ("Models", "Unload a model, and keep it registered."),
    "default": ("Models", "Set a model's default version."),
    "tune": ("Models", "Measure a model and recommend settings."),
    "demo": ("Models", "Show batching and recovery with a small model."),
    "start": ("Daemon", "Start the daemon in the background."),
    "stop": ("Daemon", "Stop the daemon; running requests finish."),
    "run": ("Daemon", "Run the daemon in the foreground."),
    "upgrade": ("Daemon", "Replace the daemon by a new process; no request fails."),
    "status": ("Daemon", "Show the daemon and its models."),
    "logs": ("Daemon", "Show the logs of the daemon, its requests and models."),
    "events": ("Daemon", "Show what happened to the daemon and its models."),
    "config": ("Daemon", "Show each setting's value and source."),
    "doctor": ("Daemon", "Check whether this machine can serve."),
    "install-service": ("Daemon", "Write systemd's units for the daemon."),
    "help": ("Shell", "Show the help, or that of a verb."),
    "version": ("Shell", "Show the version."),
    "completion": ("Shell", "Print the completion script of a shell."),
}
# The twelve of the short help, in its order; `tsctl help all` has the others.
EVERYDAY = (
    "serve", "new", "start", "register", "predict", "bench", "ls", "describe", "top", "logs", "unregister", "stop",
)  # fmt: skip


def all_verbs() -> dict[str, tuple[str, str]]:
    """Return the verbs of the core, and those of extensions."""
    from tsctl.extension import verbs

    return VERBS | verbs()


class VerbGroup(HelpCommand, click.Group):
    """A group whose commands are listed from the table and loaded when they run."""

    has_more = True

    def main(self, *args: Any, **options: Any) -> Any:
        prepare()
        return super().main(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb.

        Raises:
            click.ClickException: the verb's.
            CliError: the output cannot be written, such as to a full disk.
            Interrupted: the user pressed Ctrl-C, perhaps while the verb's module was imported.
        """
        try:
            return super().invoke(ctx)
        except click.ClickException as error:  # its message may quote a foreign text: a file's name
            error.message = shown(in_words(error.message))  # type: ignore[misc] # click declares it final
            raise
        except OSError as error:
            if error.errno not in FULL or error.filename is not None:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter fails at its end, too
            raise CliError(f"cannot write the output: {error.strerror}") from None
        except KeyboardInterrupt:
            if sys.stderr.isatty():
                echo(err=True)  # ends the line with the terminal's `^C`
            raise Interrupted("interrupted") from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(all_verbs())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        module = f"tsctl.commands.{cmd_name.replace('-', '_')}"
        if cmd_name not in VERBS:
            from tsctl.extension import module_of

            module = module_of(cmd_name)
        command: click.Command | None = importlib.import_module(module).command if module else None
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            raise unknown_verb(args[0], ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        verbs = all_verbs()
        if isinstance(ctx, HelpContext) and ctx.shows_all:
            for title in dict.fromkeys(group for group, _ in verbs.values()):
                with formatter.section(title):
                    formatter.write_dl([(verb, text) for verb, (group, text) in verbs.items() if group == title])
            return
        everyday = [verb for verb in EVERYDAY if verb in verbs]  # an extension's may be left out
        with formatter.section("Every day"):
            formatter.write_dl([(verb, verbs[verb][1]) for verb in everyday])
        formatter.write_paragraph()
        formatter.write_text(f"{len(verbs) - len(everyday)} more: `tsctl help {ALL}`. About one: `tsctl help VERB`.")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        rows = all_verbs().items()
        verbs = [CompletionItem(verb, help=text) for verb, (_, text) in rows if verb.startswith(incomplete)]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)


def in_words(message: str) -> str:
    """Return a message of click in which a text that is no number is not called an invalid range."""
    return message.replace("not a valid integer range.", "not a whole number.").replace(
        "not a valid float range.", "not a number."
    )


def unknown_verb(word: str, ctx: click.Context) -> click.UsageError:
    """Return the error on a word that is no verb, with the verb that is probably meant."""
    from tsctl.terminal.suggestions import suggest_verb

    meant = suggest_verb(word, all_verbs())
    more = f" Did you mean `{meant}`?" if meant else ""
    return click.UsageError(f"No such command `{word}`.{more}", ctx)


def print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        show_version()
        ctx.exit()


def show_version() -> None:
    from importlib.metadata import version

    echo(f"tsctl {version('tsctl')}")


@click.group(cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True)
@click.option(
    "--socket",
    type=click.Path(path_type=Path, readable=False),
    envvar="TSCTL_SOCKET",
    help="The daemon's control socket, also after the verb [default: in $XDG_RUNTIME_DIR or /tmp/tsctl-UID].",
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=print_version,
    help="Show the version and exit.",
)
@click.pass_context
def main(ctx: click.Context, socket: Path | None) -> None:
    """Serve PyTorch models with dynamic batching.

    \b
    tsctl serve handler.py                      serve a file until Ctrl-C
    tsctl start && tsctl register handler.py    serve it in the background
    tsctl predict MODEL FILE                    ask it

    A model is MODEL or MODEL/VERSION, as in the URL; without a version, the default version.
    """
    ctx.obj = socket.absolute() if socket is not None else None


if __name__ == "__main__":
    main(prog_name="tsctl")
