"""Rows that join and leave between the calls of a handler, over a real socketpair."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.handlers.process.row_daemon import RowDaemon, row_worker
from tests.handlers.samples import row
from tsctl.handlers import wire
from tsctl.handlers.credit import LATE_WINDOW

# Counts down from the number in the body, a number in each call; `calls` has the ids of each call.
COUNTS = """
    import threading
    GATE = threading.Event()
    CALLS = []
    class Counts:
        def initialize(self, context):
            context.cache = {}
        def handle(self, data, context):
            ids = list(context.request_ids.values())
            CALLS.append(ids)
            items = []
            for idx, each in enumerate(data):
                name = ids[idx]
                if each:
                    text = bytes(each["body"]).decode()
                    if text == "raise":
                        raise ValueError("no")
                    if text == "huge":
                        context.cache[name] = "huge"
                    else:
                        context.cache[name] = int(text)
                for gone in context.cancelled:
                    context.cache.pop(gone, None)
                left = context.cache[name]
                if left == "huge":
                    items.append("x" * 1_000_000)
                    continue
                context.cache[name] -= 1
                items.append(str(left))
            context.stopping_criteria = [self.stops(context.cache, name) for name in ids]
            context.set_response_header(0, "first", ids[0])
            return items
        def stops(self, cache, name):
            def stop(item):
                if item.startswith("x"):
                    return False
                if cache[name] <= 0:
                    del cache[name]
                    return True
                return False
            return stop
"""


@pytest.fixture
def daemon(model_dir: Path) -> Iterator[RowDaemon]:
    with row_worker(model_dir, COUNTS, "continuous") as daemon:
        yield daemon


def test_each_call_gives_a_piece_of_each_row_in_one_frame(daemon: RowDaemon) -> None:
    daemon.begin(r1=b"3", r2=b"2")
    daemon.hear_end(1, 2)

    assert (daemon.body(1), daemon.body(2)) == (b"321", b"21")
    first = daemon.steps[0]
    assert [number for number, _ in first.pieces] == [1, 2]
    assert ("ts_stream_next", "true") in first.pieces[0][1].headers
    assert ("ts_stream_next", "false") in daemon.ends[1][0].answers[0].headers


def test_rows_join_rows_that_are_active_and_leave_them(daemon: RowDaemon) -> None:
    daemon.begin(r1=b"100000")
    daemon.hear(lambda: len(daemon.pieces[1]) > 0)
    daemon.begin(r2=b"3")
    daemon.hear_end(2)
    count = len(daemon.pieces[1])
    daemon.hear(lambda: len(daemon.pieces[1]) > count)
    daemon.tell(wire.Cancel(1))
    daemon.hear_end(1)

    assert daemon.body(2) == b"321"


def test_a_row_that_ends_with_its_first_call_is_one_answer(daemon: RowDaemon) -> None:
    daemon.begin(r1=b"1")
    [end] = daemon.hear_end(1)

    assert (daemon.pieces[1], end.answers[0].body, end.answers[0].status) == ([], b"1", 200)
    assert {"HandlerTime", "ActiveRequests"} <= {each.name for each in end.measured}


def test_a_row_that_is_cancelled_ends_and_the_handler_is_told(daemon: RowDaemon, model_dir: Path) -> None:
    daemon.begin(r1=b"1000000")
    daemon.hear(lambda: len(daemon.pieces[1]) > 0)

    daemon.tell(wire.Cancel(1), wire.Cancel(1), wire.Cancel(7))
    [end] = daemon.hear_end(1)
    daemon.begin(r2=b"2")
    daemon.hear_end(2)

    assert end.answers[0].error
    assert daemon.body(2) == b"21"
    assert len(daemon.ends[1]) == 1


def test_a_handler_that_raises_fails_all_active_rows_and_serves_the_next(daemon: RowDaemon) -> None:
    daemon.begin(r1=b"100000")
    daemon.hear(lambda: len(daemon.pieces[1]) > 0)
    daemon.begin(r2=b"raise")
    first, second = daemon.hear_end(1, 2)

    assert first.answers[0].status == second.answers[0].status == 503
    assert b"ValueError, raised for 2 requests together; the model's log has its text" in second.answers[0].body
    assert "ValueError: no" in second.failures[0].traceback
    daemon.begin(r3=b"2")
    daemon.hear_end(3)
    assert daemon.body(3) == b"21"


def test_a_client_that_does_not_read_is_cut_and_keeps_nobody_waiting(daemon: RowDaemon) -> None:
    daemon.unread.add(1)
    daemon.begin(r1=b"huge", r2=b"20")
    daemon.hear_end(1, 2)

    assert daemon.cut == [1]
    assert sum(map(len, daemon.pieces[1])) <= LATE_WINDOW + 1_000_000
    assert daemon.body(2) == b"2019181716151413121110987654321"
    daemon.begin(r3=b"1000000")
    daemon.hear(lambda: len(daemon.pieces[3]) > 0)
    daemon.tell(wire.Credit(3, 0, 0))  # its client has gone
    daemon.hear_end(3)


PLAIN = """
    def handle(data, context):
        return data and [b"answer to " + bytes(each["body"]) for each in data]
"""


def test_a_handler_without_stopping_criteria_answers_each_row_with_one_call(model_dir: Path) -> None:
    with row_worker(model_dir, PLAIN, "continuous") as daemon:
        daemon.begin(r1=b"a", r2=b"b")
        daemon.hear_end(1, 2)

        assert (daemon.body(1), daemon.body(2)) == (b"answer to a", b"answer to b")


WRONG = """
    def handle(data, context):
        if data is None:
            return None
        context.stopping_criteria = [lambda item: 1 / 0 if item == b"b" else None for _ in data]
        return [bytes(each["body"]) for each in data]
"""


def test_a_stopping_criterion_that_raises_fails_its_row_only(model_dir: Path) -> None:
    with row_worker(model_dir, WRONG, "continuous") as daemon:
        daemon.begin(r1=b"a", r2=b"b")
        first, second = daemon.hear_end(1, 2)

        assert first.answers[0].status == 200
        assert b"ZeroDivisionError" in second.answers[0].body
        assert "ZeroDivisionError" in second.failures[0].traceback


def test_a_row_that_cannot_be_read_is_answered_400_and_the_others_run(model_dir: Path) -> None:
    handler = """
        from tsctl.handlers.builtin.text_classifier import TextClassifier
        class Ours(TextClassifier):
            ngrams = 1
            def initialize(self, context):
                self.initialized = True
            def _tokenize(self, text):
                return [text]
            def token_numbers(self, tokens):
                return {0: 0}
            def inference(self, data):
                return [text for text, in data.tokens]
            def postprocess(self, data):
                return data
    """
    with row_worker(model_dir, handler, "continuous") as daemon:
        daemon.begin(r1=b"a", r2=b"\xff", r3=b"c")
        ends = daemon.hear_end(1, 2, 3)

        assert [end.answers[0].status for end in ends] == [200, 400, 200]
        assert daemon.body(3) == b"c"


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.integers(1, 30)),
        st.tuples(st.just("cancel"), st.integers(0, 9)),
        st.tuples(st.just("gone"), st.integers(0, 9)),
        st.tuples(st.just("raise"), st.just(0)),
        st.tuples(st.just("wait"), st.integers(0, 9)),
    ),
    max_size=25,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS)
def test_whatever_happens_each_row_ends_once(model_dir: Path, actions: list[tuple[str, int]]) -> None:
    with row_worker(model_dir, COUNTS, "continuous") as daemon:
        begun: list[int] = []
        for what, number in actions:
            if what in ("begin", "raise"):
                begun.append(len(begun) + 1)
                body = b"raise" if what == "raise" else b"%d" % number
                daemon.tell(wire.Predict(begun[-1], [row(body, request_id=f"r{begun[-1]}")]))
            elif number < len(begun) and what == "cancel":
                daemon.tell(wire.Cancel(begun[number]))
            elif number < len(begun) and what == "gone":
                daemon.tell(wire.Credit(begun[number], 0, 0))
            elif number < len(begun):
                daemon.hear_end(begun[number])
        daemon.hear_end(*begun)

        assert all(len(daemon.ends[number]) == 1 for number in begun)


HALVES = """
    def handle(data, context):
        if data is None:
            return None
        made = context.__dict__.setdefault("made", [0])
        made[0] += 1
        context.stopping_criteria = [lambda item: made[0] == 4 for _ in data]
        return ["\\ud83d" if made[0] == 3 else "a" for _ in data]
"""


def test_a_token_may_be_half_a_surrogate_pair(model_dir: Path) -> None:
    with row_worker(model_dir, HALVES, "continuous") as daemon:
        daemon.begin(r1=b"x", r2=b"x")
        daemon.hear_end(1, 2)

        assert daemon.body(1) == daemon.body(2) == b"aa" + "\ud83d".encode("utf-8", "surrogatepass") + b"a"
