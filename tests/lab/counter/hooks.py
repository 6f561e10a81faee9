"""The kinds of hooks by which the core calls a capability, or lets it call: each but the last was made for one of them.

A kind exists as long as a name in the daemon, outside the shelf, matches its token. Add a kind when one is invented.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from tests.lab.counter.tree import SHELF, texts_of


class Hook(NamedTuple):
    """A kind of hooks: what it does, for which capability, and a regular expression for the names that prove it."""

    about: str
    made_for: str
    token: str


HOOKS = (
    Hook("each protocol asks a function for the version of a request", "routing", r"^steer$"),
    Hook("a function is called after the route of a model has changed", "shadowing", r"routes\.changed$"),
    Hook("an attribute of a version wraps the receivers of an answer", "shadowing", r"^RequestWatcher$"),
    Hook("functions are called before each request of a version", "shadowing", r"^model\.arrivals$"),
    Hook("a tracer of a version is told of its jobs and batches", "tracing", r"^VersionTracer$"),
    Hook("the dispatcher asks about each arriving and each lost job", "quarantine", r"^Screening$"),
    Hook("a subclass of the dispatcher", "sequences", r"^SequenceDispatcher$"),
    Hook("an attribute of the queue chooses the jobs of a batch", "grouping", r"^BatchChoice$"),
    Hook("an attribute of a request admits it", "keys", r"^client\.admit$"),
    Hook("what is tried is a part of a version, asked for its settings", "optimizing", r"^Trial$"),
    Hook("a version keeps the input of an answer", "recording", r"model\.record$"),
    Hook("an attribute of the metrics takes each value", "torchserve_logs", r"^MetricLog$"),
    Hook("an engine that hands over to one of two", "ray", r"^Engines$"),
    Hook("the seam: an extension of a list is installed", "", r"^Extension$"),
)


def existing(sources: Mapping[str, str]) -> list[Hook]:
    """Return the kinds of hooks of a daemon with these sources."""
    names = {text.text for file, source in sources.items() if not file.startswith(SHELF) for text in texts_of(source)}
    return [hook for hook in HOOKS if any(re.search(hook.token, name) for name in names)]
