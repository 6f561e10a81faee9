"""`tsctl events`."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tsctl.client import DaemonClient
from tsctl.daemon import paths
from tsctl.errors import CliError, NoDaemon, hint
from tsctl.options import optional_model_argument, own_state_dir
from tsctl.streams import echo
from tsctl.terminal.since_option import Since
from tsctl.terminal.verb import Verb

LEVELS = ("info", "warning", "error")
SILENCE = 45.0  # seconds; the daemon sends a comment every 15
LEVEL = slice(len("2026-01-31 12:00:00 "), len("2026-01-31 12:00:00 warning"))  # of a line
SHORT_LEVEL = slice(len("01-31 12:00:00 "), len("01-31 12:00:00 warning"))
WIDE = 120  # columns of a terminal whose lines have the year and the kind, too
INDENT = len("2026-01-31 12:00:00 warning ")
RETRY = 0.5  # seconds between two attempts to find the daemon again
_COLOURS = {"info": "cyan", "warning": "yellow", "error": "red"}


@click.command(cls=Verb)
@click.option("-f", "--follow", "following", is_flag=True, help="Keep printing events as they happen.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    metavar="N",
    help="Number of last events to show.",
)
@click.option("--since", type=Since(), metavar="TIME", help="Show events from then on: 10m, 2h, 2026-01-31T12:00.")
@click.option("--level", type=click.Choice(LEVELS), default="info", show_default=True, help="Lowest level to show.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one event a line.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    envvar="TSCTL_STATE_DIR",
    help="State directory of a daemon that is not running.",
)
@optional_model_argument
@click.pass_obj
def command(
    socket: Path | None, following: bool, lines: int, since: float | None, level: str, as_json: bool,
    state_dir: Path | None, model: str | None,
) -> None:  # fmt: skip
    """Show what happened to the daemon, or to MODEL: workers that ended, refused requests, changes.

    On a terminal each event is one line, cut to its width, without its kind if that is under 120 columns;
    a pipe and `--json` get it whole.
    Without a daemon, shows the last events of the one before.
    """
    asked = {"model": model, "level": level, "since": since}
    seen = shortened = False
    with contextlib.suppress(KeyboardInterrupt):
        if following:
            found = follow(socket, asked | {"limit": lines})
        else:
            try:
                found = iter(DaemonClient(socket).json("GET", "/tsctl/events", **asked, limit=lines)["events"])
            except NoDaemon as error:
                left = kept(state_dir or own_state_dir(), asked, lines)
                if not left:
                    raise
                hint(f"{error.message}; these are the last events of the one before")
                found = iter(left)
        for event in found:
            seen = True
            if as_json or not sys.stdout.isatty():
                echo(json.dumps(event) if as_json else line_of(event))
            else:
                shortened |= _show_cut(event)
    if not (seen or following or as_json):
        hint(f"there are no such events{f' of `{model}`' if model else ''}")
    if shortened:
        hint("lines are cut to the terminal; `tsctl events --json` has them whole")


def _show_cut(event: dict[str, Any]) -> bool:
    """Print an event in one line of the terminal; return whether a part was left out."""
    from tsctl import render

    colour, narrow = _COLOURS.get(event["level"], ""), render.out.width < WIDE
    return render.cut(line_of(event, short=narrow), SHORT_LEVEL if narrow else LEVEL, colour)


def show(event: dict[str, Any], *, named: bool = True) -> None:
    """Print an event for people, wrapped at words beside its time and level."""
    from tsctl.render import hanging

    # The colour of the level adds no information.
    hanging(line_of(event, named=named), INDENT, LEVEL, _COLOURS.get(event["level"], "") if named else "")


def stamp_of(seconds: float) -> str:
    """Return a time since the epoch for people, in their time zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def line_of(event: dict[str, Any], *, named: bool = True, short: bool = False) -> str:
    """Return an event as a line for people.

    Args:
        named: name the model.
        short: leave the year and the kind out.
    """
    stamp = stamp_of(event["time"])
    beginning = f"{stamp} {event['level']:7} {event['kind']:19}"
    if short:
        beginning = f"{stamp[len('2026-') :]} {event['level']:7}"
    about = ""
    if named:
        about = "/".join(filter(None, (event["model"], event["version"])))
        about += ": " if about else ""
    requests = [each for each in event["requests"] if each not in event["text"]]
    named_once = f" (request{'s' if len(requests) > 1 else ''} {', '.join(requests)})" if requests else ""
    return f"{beginning} {about}{event['text']}{named_once}"


def follow(socket: Path | None, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield events without end, also of a daemon that replaces this one, or comes after it.

    Raises:
        NoDaemon: no daemon listens on the socket at the beginning.
        CliError: the daemon rejected the request.
    """
    client = DaemonClient(socket, timeout=SILENCE)
    began = False
    while True:
        try:
            for told in client.server_sent("/tsctl/events", **asked):
                began = True
                yield from told.get("events", [told])  # all that are there, of a daemon that does not stream
                asked |= {"after": told["last"] if "events" in told else told["sequence"], "limit": None}
            began = True
        except CliError as error:
            if not began or error.kind:
                raise
        time.sleep(RETRY)


def kept(state_dir: Path, asked: dict[str, Any], limit: int) -> list[dict[str, Any]]:
    """Return the last events in the files of a daemon that is not running, the oldest first."""
    name, _, version = (asked["model"] or "").partition("/")
    found = []
    file = paths.events_file(state_dir)
    for path in (file.with_name(f"{file.name}.1"), file):
        with contextlib.suppress(OSError):
            for line in path.read_text(errors="replace").splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    event = json.loads(line)
                    if (
                        event["time"] >= (asked["since"] or 0.0)
                        and LEVELS.index(event["level"]) >= LEVELS.index(asked["level"])
                        and (not name or (event["model"] == name and version in ("", event["version"])))
                    ):
                        found.append(event)
    return found[max(0, len(found) - limit) :]
