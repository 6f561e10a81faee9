"""`tsctl top`: all models on one screen, and one model's batches as they form.

    figures      two answers of /tsctl/live → what a model does: requests a second, latency, …
    past_rates   the latest answers: which two to compare, and the sparklines
    columns      text within a number of columns; numbers and sparklines in few
    event_lines  events and batches as lines
    table        the models as lines; columns go where they do not fit, names are cut last
    detail       one model as lines: workers, batches, errors, events
    view         what is selected and shown, and what a key changes; keys from a terminal's bytes
    poller       asks the daemon, in a thread; keeps what was told while the daemon is away
    terminal     the terminal: its alternate screen, keys one by one, its size
    session      all of it together
    top          the verb

All but the last four are pure functions of documents, sizes and keys.
"""

from collections.abc import Mapping

from tsctl.extension import CommandLine


class LiveCommandLine(CommandLine):
    verbs: Mapping[str, tuple[str, str]] = {"top": ("Daemon", "Watch the models on a live screen.")}
    examples: Mapping[str, tuple[tuple[str, str], ...]] = {
        "top": (
            ("Watch the models; Enter shows one, `q` ends", "tsctl top"),
            ("Print what they do in five seconds", "tsctl top --once --interval 5"),
        ),
    }
    synonyms = dict.fromkeys(("htop", "monitor", "watch"), "top")
    documents: Mapping[str, frozenset[str]] = {"live": frozenset(), "batches": frozenset({"model", "after"})}


COMMAND_LINE = LiveCommandLine()
