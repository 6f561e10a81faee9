"""The screens, drawn without a terminal."""

from typing import Any

import pytest

from tests.extensions.live.tsctl.documents import NAME, answered, batch, event, live, model
from tsctl.extensions.live.columns import Line, ScreenSize, short, sparkline, text_of, width
from tsctl.extensions.live.detail import detail
from tsctl.extensions.live.past_rates import Past
from tsctl.extensions.live.table import once, screen
from tsctl.extensions.live.view import View
from tsctl.render import short_bytes

pytestmark = pytest.mark.usefixtures("utc")
SIZES = [
    ScreenSize(80, 24),
    ScreenSize(200, 50),
    ScreenSize(40, 20),
    ScreenSize(40, 5),
    ScreenSize(20, 3),
    ScreenSize(500, 200),
]
EVENTS = [event(f"worker {number} was killed by SIGKILL", number=number) for number in range(12)]
BATCHES = [batch(number) for number in range(256)]


def past_of(*pairs: tuple[dict[str, Any], dict[str, Any]]) -> Past:
    """Return two answers, one second apart."""
    past = Past()
    past.take_answer(live(2000.0, *(before for before, _ in pairs)))
    past.take_answer(live(2001.0, *(after for _, after in pairs)))
    return past


def busy(name: str = "m", **facts: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return answered(0) | {"name": name}, answered(400, 20, **facts) | {"name": name}


def texts(lines: list[Line]) -> list[str]:
    return [text_of(line) for line in lines]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("count", [0, 1, 3, 100])
@pytest.mark.parametrize("absent", ["", "no daemon at `/run/user/1000/tsctl/control.sock`"], ids=["", "absent"])
def test_a_screen_has_its_size(size: ScreenSize, count: int, absent: str) -> None:
    names = [f"{NAME}-{number}" if number % 2 else "模型" for number in range(count)]
    past = past_of(*map(busy, names))

    screens = [
        screen(past, View(), size, EVENTS, absent), screen(Past(), View(), size, (), absent),
        detail(past, ("模型", "1.0"), BATCHES, EVENTS, size, absent), detail(Past(), ("x", "1"), [], [], size, absent),
    ]  # fmt: skip

    for lines in screens:
        assert len(lines) == size.rows
        assert max(width(text) for text in texts(lines)) <= size.columns


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (200, "READY REQ/S ERR/S P50 ms P99 ms BATCH QUEUE CPU MEM ACTIVITY"),
        (80, "READY REQ/S ERR/S P99 ms QUEUE"), (60, "READY REQ/S"), (40, "READY REQ/S"),
    ],
)  # fmt: skip
def test_columns_go_where_they_do_not_fit_and_then_the_end_of_a_name(columns: int, shown: str) -> None:
    lines = texts(screen(past_of(busy(NAME)), View(), ScreenSize(columns, 24)))

    title = next(line for line in lines if "MODEL" in line)
    assert title.split()[1:] == shown.split()
    assert any(NAME in line for line in lines) == (columns >= 60)
    assert any(f"{NAME[:10]}" in line for line in lines)


def test_with_many_models_the_selected_one_and_two_events_are_on_the_screen() -> None:
    names = [f"model-{number:03}" for number in range(100)]
    past = past_of(*map(busy, names))

    lines = texts(screen(past, View(("model-057", "1.0")), ScreenSize(100, 24), EVENTS))

    assert any(line.startswith("> model-057") for line in lines)
    assert any("of 100" in line for line in lines)
    assert [line for line in lines if "SIGKILL" in line] == lines[-3:-1]


def test_a_daemon_that_went_away_leaves_its_last_figures() -> None:
    lines = texts(screen(past_of(busy()), View(), ScreenSize(120, 24), (), "no daemon at `x.sock`"))

    assert lines[0].startswith("No answer since ") and lines[0].endswith(": no daemon at `x.sock`")
    assert any(line.startswith("> m ") for line in lines)


def test_a_daemon_of_before_that_does_not_tell_how_long_it_is_up_is_shown_too() -> None:
    past = past_of()
    past.latest = {name: value for name, value in live(2001.0).items() if name != "upSeconds"}

    assert " · up 16 min 41 s" in texts(screen(past, View(), ScreenSize(80, 24)))[0]


def test_a_daemon_without_models_says_what_to_do() -> None:
    assert "No model is registered: `tsctl register MODEL.mar`" in texts(screen(past_of(), View(), ScreenSize(80, 24)))


TABLE = """
tsctl 9.9 · pid 42 · up 16 min 41 s                                                                             00:33:21
4 models, 2 ready · 800 requests/s · 40 errors/s · 7 queued · 0 CPUs · 600M memory

  MODEL   READY  REQ/S  ERR/S  P50 ms  P99 ms  BATCH  QUEUE   CPU    MEM  ACTIVITY
> broken    0/1      0      0       -       -      -      0     0   200M  failed: RuntimeError: no weights
  gone      0/0      0      0       -       -      -      0     0     0B  unloaded
  m         1/1    400     20      14      14    4.0      7     0   200M                                               █
  other     1/1    400     20      14      14    4.0      0     0   200M                                               █


EVENTS
00:33:20  warning  m/1.0: worker 0 was killed by SIGKILL
00:33:20  warning  m/1.0: worker 1 was killed by SIGKILL
00:33:20  warning  m/1.0: worker 2 was killed by SIGKILL
↑↓ select   Enter show   s sort by requests   q quit
"""
DETAIL = """
m/2.0  ready                                                            00:33:21
20% of the requests · 400 requests/s · 20 errors/s · p50 14.1 ms · p99 14.1 ms
2 queued, the oldest for 12.5 ms · 0 running
batches of 4.0, at most 8 · delay 10 ms · policy auto
answers 200: 380, 503: 20 · refused queue_full: 3
1 of 1 workers ready, 0 CPUs · 7 on gpu-1/ab12 ready
last error: ValueError: no
requests/s, up to 400  █

  VERSION   SHARE  REQ/S  ERR/S  P50 ms  P99 ms
  1.0         80%    400     20      14      14
> 2.0         20%    400     20      14      14

BATCHES          SIZE                       WAITED       TOOK  REASON
00:33:20.002    8/8    ████████████████      10 ms  no answer  8 failed: full
00:33:20.001    4/8    ████████········      10 ms      20 ms  delay



EVENTS
01-01 00:33:20  warning  worker 1 was killed by SIGKILL
↑↓ next model   Esc back   q quit
"""


def drawn(lines: list[Line]) -> list[str]:
    return [text.rstrip() for text in texts(lines)]


def test_the_table_has_what_each_model_does_or_why_not_and_the_latest_events() -> None:
    gone = model("gone", state="unloaded", ready=0, wanted=0, workers=[])
    broken = model("broken", state="failed", ready=0, lastError="RuntimeError: \x1b[31mno weights\nsecond line")
    pairs = [busy(queued=7), busy("other"), (gone, gone), (broken, broken)]
    past = Past()
    past.take_answer(live(2000.0, *(before for before, _ in pairs)))
    past.take_answer(live(2001.0, *(after for _, after in pairs)))

    assert drawn(screen(past, View(), ScreenSize(120, 15), EVENTS[:3])) == TABLE.strip("\n").splitlines()


def test_one_version_has_its_batches_the_newest_first_its_share_workers_and_events() -> None:
    facts: dict[str, Any] = {
        "share": 0.2, "shadow": False, "refused": {"queue_full": 3}, "oldestMs": 12.5, "queued": 2,
        "lastError": "ValueError: no",
        "workers": [{"pid": 7, "node": "gpu-1/ab12", "state": "READY", "memory": 0, "cpuSeconds": 0.0}],
    }  # fmt: skip
    before, after = busy(**facts)
    past = past_of(busy(share=0.8, shadow=False), (before | {"version": "2.0"}, after | {"version": "2.0"}))
    batches = [batch(1), batch(2, 8, reason="full", failed=8, tookMs=None)]

    lines = drawn(detail(past, ("m", "2.0"), batches, EVENTS[:2], ScreenSize(80, 22)))

    assert lines == DETAIL.strip("\n").splitlines()


LEARNED = {"bestSize": 1, "sizes": [{"size": 1, "requestMs": 25.0}, {"size": 8, "requestMs": 25.0}]}
WORKER = {"pid": 7, "state": "READY", "memory": 2**20, "cpuSeconds": 0.0, "gpuMemory": {"0": 3 * 2**30, "2": None}}


@pytest.mark.parametrize(
    ("facts", "batches", "columns", "told"),
    [
        ({"learned": LEARNED}, [], 80, "best size 1: a batch of 8 takes as long as 8 requests (learned)"),
        ({"workers": [WORKER]}, [], 80, "7 ready 1.0M GPU 0 3.0G GPU 2"),
        ({"gpuMemory": {"0": 3 * 2**30}}, [], 80, "1 of 1 workers ready, 0 CPUs · GPU 0: A Card, 4.0 GiB"),
        ({}, [batch(1)], 200, "a request had been held for the maximum delay"),
    ],
    ids=[
        "the size that was learned, as in describe",
        "GPUs of a worker",
        "their names and memory",
        "words for a reason",
    ],
)
def test_a_version_is_told_with(facts: dict[str, Any], batches: list[dict[str, Any]], columns: int, told: str) -> None:
    lines = drawn(detail(past_of(busy(**facts)), ("m", "1.0"), batches, [], ScreenSize(columns, 24)))

    assert any(told in line for line in lines), lines


def test_a_version_that_is_gone_is_told() -> None:
    lines = texts(detail(past_of(busy()), ("gone", "1.0"), [], [], ScreenSize(80, 24)))

    assert lines[:2] == ["gone/1.0", "This version is not registered any more."]


@pytest.mark.parametrize(
    ("held", "text", "card"),
    [
        pytest.param({"0": None}, "0", "GPU 0: A Card, 4.0 GiB", id="nothing is told yet"),
        pytest.param(
            {"0": 3 * 2**30, "1": None}, "0-1 3.0G", "GPU 0-1: A Card, 4.0 GiB each", id="several, one of which tells"
        ),
        pytest.param(
            {"0": 2**30, "2": 2**30, "3": 2**30, "7": 2**30}, "4 GPUs", "GPU 0,2-3,7: A Card, 4.0 GiB each",
            id="their numbers are too long",
        ),
    ],
)  # fmt: skip
def test_the_table_has_the_gpus_of_a_version_if_any_has_some(held: dict[str, int | None], text: str, card: str) -> None:
    on_the_cpu, _ = pair = busy("other")
    assert "GPU" not in texts(once(past_of(pair), 10_000))[0].split()

    past = past_of(busy(gpuMemory=held), (on_the_cpu, on_the_cpu))
    head, first, second, named = texts(once(past, 10_000))

    assert named == card, "their names and memory are below the table, and on the screen above it"
    assert any(line.endswith(f" · {card}") for line in texts(screen(past, View(), ScreenSize(200, 24))))
    assert head.split()[-3:] == ["MEM", "GPU", "STATE"]
    end = head.index("GPU") + len("GPU")
    assert (first[end - 9 : end].strip(), second[end - 9 : end].strip()) == (text, "-")


def test_one_table_has_a_state_for_each_model_and_every_column() -> None:
    broken = model("broken", state="failed", ready=0, lastError="no weights")

    lines = texts(once(past_of(busy(NAME), (broken, broken)), 10_000))

    assert lines[0].split()[-3:] == ["CPU", "MEM", "STATE"]
    assert lines[1].startswith(NAME) and lines[1].endswith("ready")
    assert lines[2].endswith("failed: no weights")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-", None), ("0", 0.0), ("3", 3), ("0.00", 0.004), ("0.25", 0.25), ("9.9", 9.94), ("10", 9.96),
        ("99999", 99_999.0), ("0.1M", 123_456.0), ("5G", 5e9),
    ],
)  # fmt: skip
def test_a_number_is_short(value: float | None, text: str) -> None:
    assert short(value) == text
    assert [short_bytes(count) for count in (0, 999, 1023, 200 * 2**20, 1.5 * 2**30)] == [
        "0B", "999B", "1.0K", "200M", "1.5G",
    ]  # fmt: skip


def test_a_sparkline_has_its_highest_value_as_its_highest_block() -> None:
    assert sparkline([0.0, 1.0, 50.0, 100.0], 6) == "   ▁▅█"
    assert sparkline([1.0, 2.0, 3.0], 2) == "▆█"
    assert sparkline([], 3) == "   "


LONG = "a-name-of-sixty-characters-that-differs-from-others-at-its-end"


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("state", ["failed", "crashing", "loading", "unloaded", "no workers"])
def test_of_a_long_name_the_middle_goes_and_never_the_state(columns: int, state: str) -> None:
    now = model(LONG, state=state, ready=0, lastError="RuntimeError: no weights")

    row = next(line for line in texts(screen(past_of((now, now)), View(), ScreenSize(columns, 24))) if "> " in line)

    assert state in row
    assert (LONG in row) or (LONG[:4] in row and "…" in row and f"{LONG[-5:]} " in row)


def test_a_ready_model_in_trouble_says_why_beside_its_activity() -> None:
    past = past_of(busy("a"), busy("b", troubles=["5 % errors", "queue 60 of 100"]))

    rows = [line for line in screen(past, View(), ScreenSize(140, 24)) if "1/1" in text_of(line)]

    assert [text_of(row).split()[0] for row in rows] == [">", "a"]
    assert "5 % errors, queue 60 of 100  " in text_of(rows[0]) and text_of(rows[0]).endswith("█")
    assert next(part.style for part in rows[0] if "errors" in part.text) == "red"
    assert any("ready, 5 % errors, queue 60 of 100" in line for line in texts(once(past, 140)))
    lines = texts(detail(past, ("b", "1.0"), [], [], ScreenSize(100, 30)))
    assert lines[0].startswith("b/1.0  ready, 5 % errors, queue 60 of 100")
