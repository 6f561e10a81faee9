"""The context of a handler: its model, its worker, and the requests of its batch.

The members, and the arguments, are those of TorchServe 0.12 (ts/context.py), because handlers written for TorchServe,
and their tests, use them. A context
lives as long as its worker, and handlers set further attributes on it; `begin_batch` sets the members that belong to
one batch.
"""

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from tsctl.handlers.sdk.metrics import MetricsCache
from tsctl.handlers.sdk.request_processor import RequestHeaders, RequestProcessor, make_processors

SERVER_NAME = "MMS"  # TorchServe's value, which handlers compare
SERVER_VERSION = "0.12.0"  # of the TorchServe whose behaviour handlers find here; some compare it


class SendPieces(Protocol):
    """Sends one piece of the response to each of some rows, by default to each row of the batch."""

    def __call__(self, items: Sequence[Any], places: Sequence[int] | None = None) -> None: ...


class Context:
    """A worker's context.

    Attributes:
        model_name: the registered name.
        manifest: the archive's manifest, as a dict.
        system_properties: `model_dir`, `gpu_id` (None on the CPU), `batch_size`, `server_name`,
            `server_version`, `limit_max_image_pixels`.
        model_yaml_config: the archive's `model-config.yaml`, `{}` if there is none.
        request_ids: row → request id, for the running batch.
        request_processor: one for each row; None while the model is loading.
        request_parameters: row → the parameters of its inference request (Open Inference Protocol), where it has any.
        metrics: the handler's metrics; see handlers/sdk/metrics.py.
        send_pieces: sends pieces of the rows' responses (handlers/sdk/streaming.py); None while no batch runs.
        stopping_criteria: with continuous batching, a function of each row's item, set by the handler in each call; it
            returns False if a further piece follows, True for the last one, None for an answer in one piece.
        cancelled: with continuous batching, the ids of the requests that ended early since the last call.
        cl_socket: TorchServe's; None here.
        header_key_sequence_id, …_start, …_end: the names of TorchServe's sequence headers.
    """

    def __init__(
        self,
        model_name: str,
        model_dir: str,
        manifest: Mapping[str, Any] | None,
        batch_size: int,
        gpu: int | None = None,
        mms_version: str = SERVER_VERSION,
        limit_max_image_pixels: bool = True,
        metrics: Any = None,
        model_yaml_config: Mapping[str, Any] | None = None,
    ) -> None:
        self.model_name = model_name
        self.manifest = dict(manifest or {})
        self.system_properties: dict[str, Any] = {
            "model_dir": model_dir,
            "gpu_id": gpu,
            "batch_size": batch_size,
            "server_name": SERVER_NAME,
            "server_version": mms_version,
            "limit_max_image_pixels": limit_max_image_pixels,
        }
        self.model_yaml_config = dict(model_yaml_config or {})
        self.request_ids: dict[int, str] = {}
        self.request_processor: list[RequestProcessor] | None = None
        self.request_parameters: dict[int, dict[str, Any]] = {}
        self.metrics: MetricsCache = MetricsCache(model_name) if metrics is None else metrics
        self.send_pieces: SendPieces | None = None
        self.stopping_criteria: Any = None
        self.cancelled: list[str] = []
        self.cl_socket: Any = None
        self.header_key_sequence_id = os.environ.get("TS_REQUEST_SEQUENCE_ID", "ts_request_sequence_id")
        self.header_key_sequence_start = os.environ.get("TS_REQUEST_SEQUENCE_START", "ts_request_sequence_start")
        self.header_key_sequence_end = os.environ.get("TS_REQUEST_SEQUENCE_END", "ts_request_sequence_end")

    # TorchServe's own attributes, which handlers and their tests use, too.

    @property
    def _system_properties(self) -> dict[str, Any]:
        return self.system_properties

    @property
    def _request_processor(self) -> list[RequestProcessor] | None:
        return self.request_processor

    @_request_processor.setter
    def _request_processor(self, processors: list[RequestProcessor] | None) -> None:
        self.request_processor = processors

    def beside(self) -> "Context":
        """Return a context for a concurrent batch; attributes set by handlers are in both."""
        other = copy.copy(self)
        other.metrics = copy.copy(self.metrics)  # request ids belong to the batch; the tally is shared
        other.end_batch()
        other.send_pieces = None
        return other

    def begin_batch(self, ids: Sequence[str], headers: Sequence[RequestHeaders]) -> None:
        """Set the rows of the batch that is about to run."""
        self.resume(dict(enumerate(ids)), make_processors(headers))

    def resume(self, ids: dict[int, str], processors: list[RequestProcessor]) -> None:
        """Set the rows of the call that is about to be made, some of which an earlier call may have had."""
        self.request_ids = ids
        self.request_processor = processors
        self.metrics.request_ids = self.request_ids
        self.request_parameters = {}

    def end_batch(self) -> None:
        """Remove the requests, as while the model is loading."""
        self.begin_batch([], [])
        self.request_processor = None

    @contextmanager
    def selected(self, rows: Sequence[int]) -> Iterator[None]:
        """Map row `i` to row `rows[i]` within the block; a row may appear more than once.

        For a part of a batch, and for rows that are pieces of one request.
        """
        ids, processors, send = self.request_ids, self.request_processor, self.send_pieces
        parameters = self.request_parameters
        assert processors is not None
        self.request_parameters = {place: parameters[row] for place, row in enumerate(rows) if row in parameters}
        self.request_ids = {index: ids[row] for index, row in enumerate(rows)}
        self.request_processor = [processors[row] for row in rows]
        self.metrics.request_ids = self.request_ids
        if send is not None:
            self.send_pieces = lambda items, places=None: send(
                items, [rows[place] for place in (range(len(rows)) if places is None else places)]
            )
        try:
            yield
        finally:
            self.request_ids, self.request_processor, self.send_pieces = ids, processors, send
            self.request_parameters = parameters
            self.metrics.request_ids = ids

    def _row(self, idx: int) -> RequestProcessor:
        if self.request_processor is None:
            raise RuntimeError("there is no request yet: the model is still loading")
        return self.request_processor[idx]

    def get_request_id(self, idx: int = 0) -> str | None:
        return self.request_ids.get(idx)

    def get_request_parameters(self, idx: int = 0) -> dict[str, Any]:
        """Return the parameters of a request of the Open Inference Protocol; empty for any other request."""
        return self.request_parameters.get(idx, {})

    def get_request_header(self, idx: int, key: str) -> Any:
        """Return a request header; the name is case-sensitive, as sent by the client."""
        return self._row(idx).get_request_property(key)

    def get_all_request_header(self, idx: int) -> dict[str, Any]:
        headers: dict[str, Any] = self._row(idx).get_request_properties()
        return headers

    def set_response_content_type(self, idx: int, value: str) -> None:
        self.set_response_header(idx, "content-type", value)

    def get_response_content_type(self, idx: int) -> str | None:
        kind: str | None = self._row(idx).get_response_header("content-type")
        return kind

    def get_response_status(self, idx: int) -> tuple[int, str | None]:
        row = self._row(idx)
        return row.get_response_status_code(), row.get_response_status_phrase()

    def set_response_status(self, code: int = 200, phrase: str = "", idx: int = 0) -> None:
        self._row(idx).report_status(code, phrase)

    def set_all_response_status(self, code: int = 200, phrase: str = "") -> None:
        for row in self.request_processor or ():
            row.report_status(code, phrase)

    def set_response_header(self, idx: int, key: str, value: str) -> None:
        self._row(idx).add_response_property(key, value)

    def get_response_headers(self, idx: int) -> dict[str, str]:
        headers: dict[str, str] = self._row(idx).get_response_headers()
        return headers

    def get_sequence_id(self, idx: int) -> str:
        return str(self.get_request_header(idx, self.header_key_sequence_id) or "")

    def __repr__(self) -> str:
        return f"<Context {self.model_name}, {len(self.request_ids)} requests>"


def decodes() -> bool:
    """Return whether handlers find JSON and texts decoded; `TS_DECODE_INPUT_REQUEST=false` turns that off."""
    return os.environ.get("TS_DECODE_INPUT_REQUEST", "true") == "true"  # 1.5 µs if unset: not for each batch
