"""The reference pages, generated from the code whenever the site is built: nothing of them is in git.

    PAGES: the page's path in the site → the function that writes it

`make docs` calls these through docs/generate/hook.py; `python -m docs.generate FOLDER` writes the pages into a folder.
"""

from collections.abc import Callable, Mapping

from docs.generate.commands import commands, exit_codes
from docs.generate.errors import errors
from docs.generate.events import events
from docs.generate.http import http
from docs.generate.metrics import metrics
from docs.generate.project import PROJECT
from docs.generate.settings import daemon_settings
from docs.generate.states import states

PAGES: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": commands,
    "reference/daemon-settings.md": daemon_settings,
    "reference/http.md": http,
    "reference/metrics.md": metrics,
    "reference/errors.md": errors,
    "reference/events.md": events,
    "reference/exit-codes.md": exit_codes,
    "design/states.md": states,
    **PROJECT,
}
