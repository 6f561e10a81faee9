"""Continuous batching: one call of the handler for all active rows, again and again, as TorchServe calls it.

A row's first call has its data; in later calls its data is an empty dict, and the handler finds what it keeps by the
request's id. The handler's `context.stopping_criteria` say of each row whether a further call follows.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from handlers import wire
from handlers.requests.rows import headers_of, items_of
from handlers.runtime.failures import bad_request, failed, tell_failure
from handlers.runtime.runtime import Runtime
from handlers.sdk.context import RequestProcessor
from handlers.sdk.streaming import NEXT

SendPiece = Callable[[int, wire.Answer], None]
Stepped = tuple[wire.Answer, bool]  # the outcome of a call for one row: a piece, or with True its end


class ActiveRow:
    """A row between its first call and its last.

    Attributes:
        message: the frame that brought it.
        processor: its headers, and what the handler sets for its answer.
        began: when, on the clock of `time.perf_counter`.
        fresh: no call has had it.
        begun: a piece of its answer has gone out; status and headers count in the first.
    """

    __slots__ = ("began", "begun", "fresh", "message", "processor", "row")

    def __init__(self, message: wire.Predict) -> None:
        [self.row] = message.rows
        self.message = message
        self.processor = RequestProcessor(headers_of(self.row))
        self.began = time.perf_counter()
        self.fresh = True
        self.begun = False

    def seconds(self) -> float:
        """Return for how long the row has been active."""
        return time.perf_counter() - self.began


class SteppedRuntime(Runtime):
    """A model whose rows join and leave between the calls of its handler.

    Attributes:
        failures: of the last call, the numbers of its rows and the traceback.
    """

    def step(self, active: Sequence[ActiveRow], cancelled: Sequence[str], send: SendPiece) -> list[Stepped]:
        """Call the handler for these rows; return one outcome a row, in order.

        Args:
            cancelled: the ids of the rows that have left since the last call.
            send: takes (row, piece) while the handler runs.
        """
        rows = [each.row for each in active]
        self.failures = []
        self._handler_time = 0.0
        fresh = [index for index, each in enumerate(active) if each.fresh]
        data: list[Any] = [{} for _ in rows]
        if not fresh:
            return self._call(active, rows, data, cancelled, send)
        values = self._data_of([rows[index] for index in fresh])
        unreadable = self._find_unreadable([rows[index] for index in fresh], values)
        for index, value in zip(fresh, values, strict=True):
            data[index] = value
            active[index].fresh = False
        if not unreadable:
            return self._call(active, rows, data, cancelled, send)
        bad = {fresh[place]: bad_request(rows[fresh[place]], why) for place, why in unreadable.items()}
        good = [index for index in range(len(rows)) if index not in bad]

        def send_good(place: int, piece: wire.Answer) -> None:
            send(good[place], piece)

        stepped = iter(
            self._call([active[index] for index in good], [rows[index] for index in good],
                       [data[index] for index in good], cancelled, send_good) if good else ()
        )  # fmt: skip
        return [(bad[index], True) if index in bad else next(stepped) for index in range(len(rows))]

    def _call(
        self,
        active: Sequence[ActiveRow],
        rows: Sequence[wire.Row],
        data: list[Any],
        cancelled: Sequence[str],
        send: SendPiece,
    ) -> list[Stepped]:
        context = self._context
        context.resume([row.id for row in rows], [each.processor for each in active])
        for index, row in enumerate(rows):
            if row.infer is not None:
                context.request_parameters[index] = row.infer.parameters
        context.cancelled = list(cancelled)

        def send_pieces(items: Sequence[Any], places: Sequence[int] | None = None) -> None:
            where = range(len(rows)) if places is None else places
            for index, (place, item) in enumerate(zip(where, items, strict=True)):
                send(place, self._encode(index, rows[place], item))

        context.send_pieces = send_pieces
        began = time.perf_counter()
        try:
            items = items_of(self._entry.handle(data, context), len(rows))
        except BaseException as error:  # noqa: BLE001 - user code may raise anything
            self._note_failure(range(len(rows)), tell_failure(error, self._model_dir))
            return [(failed(row, error), True) for row in rows]
        finally:
            self._handler_time += time.perf_counter() - began
        labels = (("ModelName", context.model_name), ("Level", "Model"))
        self._tally.add("gauge", "HandlerTime", "ms", labels, self._handler_time * 1000)
        self._tally.add("gauge", "ActiveRequests", "count", labels, len(rows))
        return [self._stepped(index, each, item) for index, (each, item) in enumerate(zip(active, items, strict=True))]

    def _stepped(self, index: int, active: ActiveRow, item: Any) -> Stepped:
        context, row, processor = self._context, active.row, active.processor
        ends = True
        if isinstance(item, BaseException):
            self._note_failure([index], tell_failure(item, self._model_dir))
        elif context.stopping_criteria:
            try:
                stop = context.stopping_criteria[index](item)
            except BaseException as error:  # noqa: BLE001 - user code may raise anything
                self._note_failure([index], tell_failure(error, self._model_dir))
                return failed(row, error), True
            if stop is not None:
                ends = bool(stop)
                if not ends and active.begun and isinstance(item, str):  # a token of a stream: nearly always
                    return wire.Answer(200, item.encode("utf-8", "surrogatepass")), False
                active.begun = True
                processor.add_response_property(NEXT, "false" if ends else "true")
        elif processor.get_response_header(NEXT) == "true":
            processor.add_response_property(NEXT, "false")
        return self._encode(index, row, item), ends
