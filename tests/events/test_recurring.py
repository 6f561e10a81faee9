"""What recurs is told at once, and then once a minute with its count."""

from tests.kit.clock import FakeClock
from tsctl.daemon.events.events import Events
from tsctl.daemon.events.recurring import EVERY, MOST_IDS, MOST_SERIES, Recurring


class Told:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.events = Events()
        self.recurring = Recurring(self.events, self.clock)

    def refuse(self, *ids: str, reason: str = "full", model: str = "m") -> None:
        for each in ids:
            self.recurring.note(
                "requests-refused", f"refused: {reason}", model=model, version="1.0", reason=reason, request=each
            )

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events.after()]


def test_the_others_are_told_once_a_minute_with_their_count_and_the_total() -> None:
    told = Told()

    told.refuse(*map(str, range(784)))
    told.clock.advance(EVERY)
    told.refuse("x")
    told.clock.advance(EVERY)

    assert told.texts[1:] == [
        "refused: full (783 more within 60 s, 784 in all)", "refused: full (1 more within 60 s, 785 in all)"
    ]  # fmt: skip
    assert (told.texts[0], told.events.after()[0].requests) == ("refused: full", ("0",)), "the first at once"
    assert len(told.events.after()[1].requests) == MOST_IDS
    told.clock.advance(EVERY)
    told.refuse("b")
    assert told.texts[3:] == ["refused: full"], "after a quiet minute at once again"
    told.recurring.note("requests-refused", "refused", reason="other", count=50)
    assert told.texts[4:] == ["refused (50 at once)"]


def test_each_reason_and_each_model_is_counted_apart() -> None:
    told = Told()

    told.refuse("a")
    told.refuse("b", reason="loading")
    told.refuse("c", model="other")

    assert [(event.model, event.text) for event in told.events.after()] == [
        ("m", "refused: full"), ("m", "refused: loading"), ("other", "refused: full")
    ]  # fmt: skip


def test_at_the_end_the_counts_of_the_running_minute_are_told() -> None:
    told = Told()

    told.refuse("a", "b", "c")
    told.recurring.close()
    told.clock.advance(2 * EVERY)

    assert told.texts == ["refused: full", "refused: full (2 more within 60 s, 3 in all)"]


def test_the_number_of_series_is_bounded() -> None:
    told = Told()

    for number in range(MOST_SERIES + 10):
        told.refuse("a", model=str(number))

    assert len(told.texts) == MOST_SERIES
