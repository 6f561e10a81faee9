"""Facts to lines: the whole screen for a terminal, or one line after the other for a pipe. Pure functions.

The screen always has the same number of lines, so that nothing on it moves.
"""

from collections.abc import Sequence
from textwrap import wrap

from tsctl.showcase.facts import Disturbance, MeasuredPace, ShowcaseFacts

WIDTH, HEIGHT = 80, 24  # of the smallest terminal that has the whole screen
LINES = 22  # two are left for the shell's prompt
QUIET = 1.5  # seconds without a line into a pipe, after which one is due: nothing is silent for two
_BAR = 34  # columns
_DISTURBANCES = 3
_INK = 6  # of 16: a pixel that is drawn
_HALVES = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
WITHOUT_PHOTOGRAPH = "A photograph is classified at the end, too, after: pip install 'tsctl[demo]'"
OWN_FILE = (
    "With a file of your own:",
    "  tsctl new hello --text",
    "  tsctl serve hello/handler.py",
    "  curl http://127.0.0.1:8080/predictions/hello -d 'some text'",
)


def screen(facts: ShowcaseFacts, now: float) -> list[str]:
    """Return the lines of the screen, `LINES` of at most `WIDTH` columns.

    Args:
        now: seconds since the beginning of the demo.
    """
    lines = [f"{'tsctl demo: each number is measured now, on this machine':<72}{now:>6.0f} s", ""]
    beside = [*wrap(facts.about, WIDTH - 12)[:3], facts.answer]
    drawn = draw_digit(facts.digit)
    beside += [""] * (len(drawn) - len(beside))
    lines += [f"  {left}  {right}".rstrip() for left, right in zip(drawn, beside, strict=True)]
    lines += ["", f"Answers per second, {facts.clients} clients"]
    lines += _padded([pace_line(pace, facts.paces) for pace in facts.paces], 2)
    heading = f"Disturbances, while {facts.clients} clients go on asking"
    lines += ["", f"{heading:<51}{'serves after':>14}{'requests since':>15}"]
    lines += _padded([disturbance_line(each, facts.ended) for each in facts.disturbances], _DISTURBANCES)
    lines += ["", counter_line(facts) if facts.counting else ""]
    lines.append(WITHOUT_PHOTOGRAPH if facts.lacks_photograph and facts.finished else "")
    lines += (
        list(OWN_FILE) if facts.finished else _padded([doing_line(facts, now)] if facts.doing else [], len(OWN_FILE))
    )
    return lines


def draw_digit(pixels: bytes) -> list[str]:
    """Return four lines of eight columns: two rows of pixels a line."""
    ink = [value >= _INK for value in pixels]
    rows = [ink[start : start + 8] for start in range(0, 64, 8)]
    return [
        "".join(_HALVES[upper, lower] for upper, lower in zip(rows[row], rows[row + 1], strict=True))
        for row in range(0, 8, 2)
    ]


def pace_line(pace: MeasuredPace, paces: Sequence[MeasuredPace]) -> str:
    """Return a bar and a number; of all but the first also the ratio to the first."""
    most = max(each.per_second for each in paces)
    length = round(pace.per_second / most * _BAR) if most else 0
    label = f"{pace.label}, {pace.batch:.1f} each" if pace.batch > 1 else pace.label
    return f"  {label:<21} {'█' * length:<{_BAR}}{thousands(round(pace.per_second)):>8}{ratio(pace, paces[0])}"


def pace_text(pace: MeasuredPace, first: MeasuredPace) -> str:
    """Return the pace in words, for a pipe."""
    label = f"{pace.label}, {pace.batch:.1f} each" if pace.batch > 1 else pace.label
    return f"{label}: {thousands(round(pace.per_second))} answers per second{ratio(pace, first)}"


def ratio(pace: MeasuredPace, first: MeasuredPace) -> str:
    """Return the ratio to the first pace; empty for the first itself."""
    return f"  {pace.per_second / first.per_second:.1f} ×" if pace is not first and first.per_second else ""


def disturbance_line(each: Disturbance, ended: int) -> str:
    """Return when something was done, how soon the model served again, and how many requests have ended since."""
    after = "…" if each.seconds is None else seconds_text(each.seconds)
    return f"  {clock(each.at):>5}  {told(each):<42}{after:>14}{thousands(ended - each.ended_before):>15}"


def told(each: Disturbance) -> str:
    return f"{each.text}: {each.outcome}" if each.outcome else each.text


def counter_line(facts: ShowcaseFacts) -> str:
    return f"  answered {thousands(facts.answered)}   failed {thousands(facts.failed)}"


def doing_line(facts: ShowcaseFacts, now: float) -> str:
    """Return the current activity; the sign before it moves."""
    return f"{_SPINNER[int(now * 5) % len(_SPINNER)]} {facts.doing}, {now - facts.doing_since:.0f} s"


def spoken(facts: ShowcaseFacts) -> list[str]:
    """Return the lines that a pipe gets, each of which is true for good; more facts only add lines."""
    lines = [facts.about]
    if facts.answer:
        lines.append(facts.answer)
    lines += [f"  {pace_text(pace, facts.paces[0])}" for pace in facts.paces if pace.batch]
    for each in facts.disturbances:
        if each.seconds is not None:
            lines.append(f"  {clock(each.at)}  {told(each)}, serves after {seconds_text(each.seconds)}")
    if facts.photograph is not None:
        classes = ", ".join(f"{name} {probability:.2f}" for name, probability in facts.photograph.classes)
        lines.append(f"A photograph of scikit-learn, as EfficientNet-Lite0 sees it: {classes}.")
    if facts.lacks_photograph:
        lines.append(WITHOUT_PHOTOGRAPH)
    if facts.finished:
        lines += [counter_line(facts), "", *OWN_FILE]
    return lines


def heartbeat(facts: ShowcaseFacts, now: float) -> str:
    """Return the line for a pipe that has got nothing for `QUIET` seconds."""
    counted = counter_line(facts) if facts.counting else ""
    return f"  … {facts.doing}, {now - facts.doing_since:.0f} s{counted}"


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


def seconds_text(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"


def thousands(count: int) -> str:
    """Return a number with a space between thousands."""
    return f"{count:,}".replace(",", " ")


def _padded(lines: list[str], count: int) -> list[str]:
    return [*lines, *[""] * (count - len(lines))]
