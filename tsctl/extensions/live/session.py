"""`tsctl top` as a whole: on a terminal until a key ends it, else one table."""

import time
from collections import deque
from collections.abc import Mapping, Sequence

from tsctl.client import DaemonClient
from tsctl.extension import PastRate, extensions
from tsctl.extensions.live.columns import Line, ScreenSize
from tsctl.extensions.live.detail import detail
from tsctl.extensions.live.figures import Document, Key
from tsctl.extensions.live.past_rates import STEP, Past
from tsctl.extensions.live.poller import News, Poller
from tsctl.extensions.live.table import once, screen
from tsctl.extensions.live.terminal import Terminal, draw_plain
from tsctl.extensions.live.view import View, keys_of, ordered, pressed
from tsctl.render import out

BATCHES = 256  # as many as the daemon keeps


class Watch:
    """The knowledge of the daemon and the view: both change with news and with keys.

    Attributes:
        view: what is selected and shown.
    """

    def __init__(self) -> None:
        self.view = View()
        self._past = Past()
        self._absent = ""
        self._latest = News()
        self._batches: deque[Document] = deque(maxlen=BATCHES)

    def take_news(self, news: News) -> None:
        """Take what the daemon answered, or that it did not."""
        self._absent = news.absent
        if news.live is None:
            return
        self._past.take_answer(news.live)
        if news.subject != self._latest.subject:
            self._batches.clear()
        self._batches.extend(news.batches)
        self._latest = news

    def recall(self, rates: Mapping[Key, Sequence[PastRate]], step: float) -> None:
        """Take what the daemon remembers from before its first answer (`Past.recall`)."""
        self._past.recall(rates, step)

    def press(self, key: str) -> None:
        """Change what is selected and shown."""
        self.view = pressed(self.view, key, ordered(self._past.figures(), self.view.order))

    def lines(self, size: ScreenSize) -> list[Line]:
        subject = self.view.selected if self.view.opened else None
        known = self._latest if self._latest.subject == subject else News()
        if subject is None:
            return screen(self._past, self.view, size, known.events, self._absent)
        batches = list(self._batches) if known is self._latest else []
        return detail(self._past, subject, batches, known.events, size, self._absent)


def watch(client: DaemonClient, interval: float) -> None:
    """Show the models on the whole screen until a key ends it; `interval` in seconds.

    Raises:
        CliError: the daemon does not answer at the beginning.
        KeyboardInterrupt: Ctrl-C was pressed; the terminal is as before.
    """
    shown = Watch()
    shown.take_news(News(client.json("GET", "/tsctl/live")))
    shown.recall(_remembered(client), max(interval, STEP))
    with Terminal() as terminal, Poller(client, interval) as poller:
        while True:
            for news in poller.news():
                shown.take_news(news)
            terminal.draw(shown.lines(terminal.size))
            typed = terminal.wait(poller.wake)
            if typed is None:
                return
            for key in keys_of(typed):
                if key == "quit":
                    return
                shown.press(key)
            poller.show(shown.view.selected if shown.view.opened else None)


def _remembered(client: DaemonClient) -> Mapping[Key, Sequence[PastRate]]:
    """Return the rates of versions before now, as far as the daemon keeps any."""
    found: dict[Key, Sequence[PastRate]] = {}
    for each in extensions():
        found |= each.past(lambda path: client.json("GET", path))
    return found


def print_once(client: DaemonClient, interval: float) -> None:
    """Print the models as one table: what they did in `interval` seconds.

    Raises:
        CliError: the daemon does not answer.
    """
    past = Past()
    past.take_answer(client.json("GET", "/tsctl/live"))
    time.sleep(interval)
    past.take_answer(client.json("GET", "/tsctl/live"))
    draw_plain(once(past, out.width))
