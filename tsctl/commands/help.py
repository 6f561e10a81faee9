"""`tsctl help`."""

from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from tsctl.cli import all_verbs, unknown_verb
from tsctl.streams import echo
from tsctl.terminal.help import ALL, HelpContext
from tsctl.terminal.verb import Verb


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Sequence[CompletionItem]:
    rows = {ALL: ("", "Show every verb, or every option.")} | all_verbs()
    return [CompletionItem(word, help=text) for word, (_, text) in rows.items() if word.startswith(incomplete)]


@click.command(cls=Verb)
@click.argument("words", metavar="[VERB] [all]", nargs=-1, shell_complete=_complete)
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of tsctl, or that of VERB.

    With `all`, every verb; of a VERB with many options, every option. The same as `tsctl VERB --help`.
    """
    root = ctx.find_root()
    verbs = [word for word in words if word != ALL]
    if len(verbs) > 1:
        raise click.UsageError(f"help is about one verb at a time, and these are {len(verbs)}: {', '.join(verbs)}")
    shown: click.Context = root
    for verb in verbs:
        found = root.command.get_command(root, verb) if isinstance(root.command, click.Group) else None
        if found is None:
            raise unknown_verb(verb, root)
        shown = found.make_context(verb, [], parent=root, resilient_parsing=True)
    if ALL in words and isinstance(shown, HelpContext):
        shown.show_all()
    echo(shown.get_help())
