"""`python -m tsctl.container WORDS`: the entry point of the image."""

import os
import sys
from collections.abc import Sequence

from tsctl.container.entry import Program, read_words
from tsctl.streams import echo


def main(words: Sequence[str]) -> None:
    entry = read_words(words)
    if entry.program is Program.OTHER:
        _become(entry.words)
    from tsctl.container.torchserve import torchserve

    torchserve(entry.words, prog_name="torchserve", obj=entry.program is Program.SERVE)


def _become(words: Sequence[str]) -> None:
    """Replace this process by another program; the exit codes are those of a shell."""
    try:
        os.execvp(words[0], list(words))
    except OSError as error:
        echo(f"error: cannot run `{words[0]}`: {error.strerror}", err=True)
        echo("hint: `serve` and `torchserve --start …` start the server", err=True)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(sys.argv[1:])
