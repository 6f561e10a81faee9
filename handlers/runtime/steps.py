"""Continuous batching: one call of the handler for all active rows, again and again, as TorchServe calls it.

A row's first call has its data; in later calls its data is an empty dict, and the handler finds what it keeps by the
request's id. The handler's `context.stopping_criteria` say of each row whether a further call follows.
"""

import time
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from tsctl.handlers import wire
from tsctl.handlers.requests.out_of_memory import is_out_of_memory, make_room
from tsctl.handlers.requests.rows import headers_of, in_memory, items_of
from tsctl.handlers.runtime.failures import bad_request, failed
from tsctl.handlers.runtime.runtime import BatchPieces, Runtime, SendPieces, is_exception
from tsctl.handlers.sdk.request_processor import RequestProcessor
from tsctl.handlers.sdk.streaming import NEXT
from tsctl.handlers.tensor_heads import InferHead

# The outcome of a call for one row: a piece, or with True its end; bytes are a piece of an answer that has begun.
Stepped = tuple[wire.Answer, bool] | bytes


class ActiveRow:
    """A row between its first call and its last.

    Attributes:
        message: the frame that brought it; `number` is that of its batch, `row` its only one.
        processor: its headers, and what the handler sets for its answer.
        began: when, on the clock of `time.perf_counter`.
        fresh: no call has had it.
        begun: a piece of its answer has gone out; status and headers count in the first.
    """

    __slots__ = ("began", "begun", "fresh", "message", "number", "processor", "row")

    def __init__(self, message: wire.Predict) -> None:
        [self.row] = message.rows
        self.message = message
        self.number = message.batch
        self.processor = RequestProcessor(headers_of(self.row))
        self.began = time.perf_counter()
        self.fresh = True
        self.begun = False

    def seconds(self) -> float:
        """Return for how long the row has been active."""
        return time.perf_counter() - self.began


Row = TypeVar("Row", bound=ActiveRow)


class ActiveRows(Generic[Row]):
    """The rows of a call, as the context shows them; most calls have the same rows as the call before.

    Attributes:
        begun: a piece of each one's answer has gone out.
        fresh: the indices of those that no call has had.
        parameters: index → the parameters of its inference request, where it has any.
    """

    __slots__ = ("active", "begun", "fresh", "ids", "parameters", "processors", "rows")

    def __init__(self, active: Sequence[Row]) -> None:
        self.active = active
        self.rows = [each.row for each in active]
        self.begun = False
        self.fresh = [index for index, each in enumerate(active) if each.fresh]
        self.ids = dict(enumerate([row.id for row in self.rows]))
        self.processors = [each.processor for each in active]
        self.parameters = {
            index: row.infer.parameters for index, row in enumerate(self.rows) if isinstance(row.infer, InferHead)
        }


class SteppedRuntime(Runtime):
    """A model whose rows join and leave between the calls of its handler.

    Attributes:
        failures: of the last call, the numbers of its rows and the traceback.
        further: all outcomes of the last call are further pieces, bytes.
    """

    further = False
    _called = 0  # rows of the last call, if it was not reported yet

    def measured(self) -> list[wire.Measurement]:
        if self._called:  # gauges: only the last call counts, so that the others take no time for them
            self._tally.add("gauge", "HandlerTime", "ms", self._labels, self._handler_time * 1000)
            self._tally.add("gauge", "ActiveRequests", "count", self._labels, self._called)
            self._called = 0
        return super().measured()

    def step(self, batch: ActiveRows[Any], cancelled: Sequence[str], send: SendPieces) -> list[Stepped]:
        """Call the handler for these rows; return one outcome a row, in order.

        Args:
            batch: may be that of the last call, if none has joined or ended.
            cancelled: the ids of the rows that have left since the last call.
            send: takes (row, piece) pairs while the handler runs.
        """
        self.failures = []
        self.further = False
        self._handler_time = 0.0
        self.too_large = 0
        try:
            return self._step(batch, cancelled, send)
        except BaseException as error:  # noqa: BLE001 - of objects that the handler put in place of ours
            self.further = False
            return [(answer, True) for answer in self.fail(batch.rows, error)]

    def _step(self, batch: ActiveRows[Any], cancelled: Sequence[str], send: SendPieces) -> list[Stepped]:
        rows = batch.rows
        data: list[Any] = [{} for _ in rows]
        if not batch.fresh:
            return self._call(batch, data, cancelled, send, range(len(rows)))
        fresh, batch.fresh = batch.fresh, []
        values, unreadable = self._read_rows([rows[index] for index in fresh])
        for index, value in zip(fresh, values, strict=True):
            data[index] = value
            batch.active[index].fresh = False
        if not unreadable:
            return self._call(batch, data, cancelled, send, range(len(rows)))
        bad = {fresh[place]: bad_request(rows[fresh[place]], why) for place, why in unreadable.items()}
        good = [index for index in range(len(rows)) if index not in bad]
        others = ActiveRows([batch.active[index] for index in good])
        stepped = iter(self._call(others, [data[index] for index in good], cancelled, send, good) if good else ())
        self.further = False
        return [(bad[index], True) if index in bad else next(stepped) for index in range(len(rows))]

    def _call(
        self,
        batch: ActiveRows[Any],
        data: list[Any],
        cancelled: Sequence[str],
        send: SendPieces,
        numbers: Sequence[int],
    ) -> list[Stepped]:
        context, rows = self._context, batch.rows
        processors = batch.processors.copy()
        context.resume(batch.ids.copy(), processors)
        if batch.parameters:
            context.request_parameters = batch.parameters.copy()
        context.cancelled = list(cancelled)
        context.send_pieces = BatchPieces(self._encode, send, processors, rows, numbers)
        began = time.perf_counter()
        answers: list[wire.Answer] = []
        crowded = False
        try:
            items = in_memory(items_of(self._entry.handle(data, context), len(rows)))
        except BaseException as error:  # noqa: BLE001 - user code may raise anything
            answers, crowded = self.fail(rows, error), is_out_of_memory(error)
        finally:
            self._handler_time += time.perf_counter() - began
        if crowded:  # outside the `except` block, so that the memory of the exception's frames is freed
            make_room()
            self._note_crowded(len(rows))
        if answers:
            return [(answer, True) for answer in answers]
        self._called = len(rows)
        stops = self._ask_criteria(items)
        if batch.begun and stops.count(False) == len(items) and {*map(type, items)} == {str}:
            try:  # tokens of streams: nearly always
                outcomes: list[Stepped] = [str.encode(item) for item in items]
            except UnicodeEncodeError:  # half a surrogate pair; as `suppress`, this takes 2 us
                pass
            else:
                self.further = True
                return outcomes
        stepped = [
            self._outcome(index, *each) for index, each in enumerate(zip(batch.active, items, stops, strict=True))
        ]
        batch.begun = all(each.begun for each in batch.active)
        return stepped

    def _ask_criteria(self, items: Sequence[Any]) -> list[Any]:
        """Return whether each row's stopping criterion ends it, or the exception that it raised; None without one."""
        criteria = self._context.stopping_criteria
        if not criteria:
            return [None] * len(items)
        stops: list[Any] = []
        for index, item in enumerate(items):
            try:
                stop = criteria[index](item) if type(item) is str or not is_exception(item) else None
                stops.append(stop if stop is False or stop is None else bool(stop))
            except BaseException as error:  # noqa: BLE001 - user code may raise anything
                stops.append(error)
        return stops

    def _outcome(self, index: int, active: ActiveRow, item: Any, stop: object) -> Stepped:
        """Return the outcome for a row whose stopping criterion returned or raised `stop`; None if it has none."""
        processor = active.processor
        ends = True
        raised = item if is_exception(item) else stop
        if isinstance(raised, BaseException):
            self._note_failure([index], self._tell(raised))
            if raised is stop:
                return failed(active.row, raised), True
        elif stop is not None:
            ends = stop is True
            if not ends and active.begun and isinstance(item, str):
                return str.encode(item, "utf-8", "surrogatepass")
            active.begun = True
            processor.add_response_property(NEXT, "false" if ends else "true")
        elif not self._context.stopping_criteria and processor.get_response_header(NEXT) == "true":
            processor.add_response_property(NEXT, "false")
        return self._encode(processor, active.row, item), ends
