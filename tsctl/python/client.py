"""The blocking client."""

import os
import time
from collections.abc import Generator, Mapping
from typing import Any, Self

from tsctl.python import calls
from tsctl.python.answers import TextPieces
from tsctl.python.session import ClientSession
from tsctl.python.transport.blocking import connect
from tsctl.python.transport.link import finish


class Client(ClientSession):
    """A daemon, for programs: predictions, and the management of models.

    Connections are kept and used again. A client may be used by several threads, and after a fork. Every call raises

        CannotConnect: no daemon listens at the address, or this user may not connect.
        ConnectionLost: the connection broke; the request may have been run.
        DeadlineExceeded: the deadline passed, here or in the daemon.
        UnreadableAnswer: the answer is not HTTP, or not of the type that it names.
        Overloaded: the daemon answered 503 with `Retry-After` for as long as the call had time.
        ErrorAnswer: the answer has another status of 400 or more: unknown model, failed handler, wrong token.

    A call is repeated only if it is answered 503 with `Retry-After`: until its deadline, or for 10 s without one.

    Args:
        address: the path of a control socket, or the http:// or https:// URL of an inference or management address;
            None is `TSCTL_SOCKET`, or the default socket. The socket answers everything; over TCP, predictions and
            management are usually at two addresses.
        token: sent with each request: `TSCTL_INFERENCE_TOKEN` or `TSCTL_TOKEN` of the daemon. Over http:// a token can
            be read on the way.
        deadline: seconds that each call may take, with its repetitions, unless the call says otherwise; None for no
            limit. The daemon is told what is left, and runs no request whose time is over.
        tls: for https:// addresses; None verifies certificates with the system's authorities.

    Raises:
        ValueError: the address is neither a path nor a URL, or the token cannot be sent.
    """

    _connect = staticmethod(connect)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are kept; the client can be used again."""
        self._drop()

    def predict(
        self,
        model: str,
        input: Any = None,  # noqa: A002 - the word of the trade
        *,
        parts: Mapping[str, Any] | None = None,
        content_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> Any:
        """Return a model's answer.

        Args:
            model: `MODEL`, or `MODEL/VERSION`; without a version the default version answers.
            input: str is sent as text, dict, list and numbers as JSON, bytes as they are, a `pathlib.Path` as the
                file it names, a numpy array or a torch tensor as .npy, a Pillow image as PNG.
            parts: several inputs by name, sent as a form; instead of `input`.
            content_type: instead of the type above.
            headers: further headers of the request, such as `x-request-priority`.
            deadline: seconds, instead of the client's.

        Returns:
            The answer by its content type: JSON → objects, text → str, anything else, and no type → bytes.

        Raises:
            TypeError: the input is of no type that can be sent.
            ValueError: the input holds what its format cannot, or the model's name is none.
            OSError: the file cannot be read.
            TsctlError: as for every call.
        """
        return finish(self._answer(calls.predict(model, input, parts, content_type, headers), deadline)).value

    def stream(
        self,
        model: str,
        input: Any = None,  # noqa: A002
        *,
        parts: Mapping[str, Any] | None = None,
        content_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> Generator[str | bytes, None, None]:
        """Yield a model's answer as it comes: str if the answer is text or JSON, else bytes.

        The request is sent when the first piece is asked for. Close the iterator to leave early.
        Arguments and errors are those of `predict`.
        """
        call = calls.predict(model, input, parts, content_type, headers)
        link, _, answered = finish(self._begin(call, deadline))
        text = TextPieces(answered)
        try:
            while piece := finish(link.piece()):
                if decoded := text.decode(piece):
                    yield decoded
        finally:
            link.leave()
        self._keep(link)
        if rest := text.rest():
            yield rest

    def register(
        self,
        target: str | os.PathLike[str],
        *,
        name: str | None = None,
        handler: str | None = None,
        workers: int | None = None,
        batch_size: int | None = None,
        max_delay: float | None = None,
        replace: bool = False,
        settings: Mapping[str, Any] | None = None,
        deadline: float | None = None,
    ) -> dict[str, Any]:
        """Register a model, wait until its workers are ready, and return the daemon's document.

        Args:
            target: what `tsctl serve` takes: the path of an archive, a directory, a handler (`handler.py:function`) or
                a model; `module:attribute`; a name in the model store; or a URL that the daemon allows. Paths outside
                the store are for the control socket only.
            name: instead of the target's own.
            handler: instead of the target's own.
            workers: None is what the archive says, or 1.
            batch_size: the largest batch; None is the archive's, or the daemon's default.
            max_delay: seconds that a request waits at most for others to form a batch.
            replace: replace the version if it is registered; it serves until the new one does.
            settings: further parameters of `POST /models`, such as `{"response_timeout": 10}`.
            deadline: seconds, instead of the client's.

        Raises:
            ValueError: there is nothing at the target's path, or it cannot be served.
            ErrorAnswer: the archive is invalid, or its handler does not load; the message holds the traceback.
            TsctlError: as for every call.
        """
        call = calls.register(target, name, handler, workers, batch_size, max_delay, replace, settings)
        return finish(self._document(call, deadline))

    def unregister(self, model: str, *, deadline: float | None = None) -> None:
        """Unregister a model or a version; its running requests finish.

        Raises:
            TsctlError: as for every call.
        """
        finish(self._document(calls.unregister(model), deadline))

    def scale(self, model: str, workers: int, *, deadline: float | None = None) -> None:
        """Change the number of workers, and wait until they are ready.

        Raises:
            TsctlError: as for every call.
        """
        finish(self._document(calls.scale(model, workers), deadline))

    def describe(self, model: str, *, deadline: float | None = None) -> dict[str, Any]:
        """Return the document of one version: `MODEL` for the default version, or `MODEL/VERSION`.

        Raises:
            TsctlError: as for every call.
        """
        return finish(self._description(model, deadline))

    def models(self, *, deadline: float | None = None) -> list[str]:
        """Return the names of all registered models.

        Raises:
            TsctlError: as for every call.
        """
        return finish(self._names(deadline))

    def _owner(self) -> int:
        return os.getpid()  # after a fork the connections are the parent's, too

    async def _pause(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - no event loop runs this
