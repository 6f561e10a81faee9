"""`tsctl.serve`: a model in a private daemon."""

import os
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, Self

from tsctl.daemon.paths import logs_dir
from tsctl.logs.lines import printed
from tsctl.private_daemon import PrivateDaemon, own_environment
from tsctl.python.client import Client
from tsctl.python.errors import ErrorAnswer, ServeFailed
from tsctl.python.serving.handler_file import name_of, write
from tsctl.starting import NotStarted

ARGUMENTS = (
    "--inference-address=none",
    "--restore=false",
    "--access-log=false",
    "--template=false",  # a few workers of one model: each imports what it needs
)


class ServedModel:
    """A model that is served by a daemon of its own, until `close` or the end of the `with` block.

    Any number of threads may ask at the same time; that is how requests become batches.

    Attributes:
        name: the model's name.
        client: asks the daemon; for everything that is not here.
    """

    def __init__(self, daemon: PrivateDaemon, name: str) -> None:
        self.name = name
        self.client = Client(daemon.socket)
        self._daemon = daemon

    def __repr__(self) -> str:
        return f"<ServedModel {self.name} at {self.socket}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def socket(self) -> Path:
        """The control socket: for `AsyncClient`, `curl --unix-socket` and `tsctl --socket`."""
        return self._daemon.socket

    def predict(
        self,
        input: Any = None,  # noqa: A002 - as of Client.predict
        *,
        parts: Mapping[str, Any] | None = None,
        content_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> Any:
        """Return the model's answer; arguments, value and errors are those of `Client.predict`."""
        return self.client.predict(
            self.name, input, parts=parts, content_type=content_type, headers=headers, deadline=deadline
        )

    def stream(
        self,
        input: Any = None,  # noqa: A002
        *,
        parts: Mapping[str, Any] | None = None,
        content_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> Generator[str | bytes, None, None]:
        """Yield the model's answer as it comes; arguments, pieces and errors are those of `Client.stream`."""
        return self.client.stream(
            self.name, input, parts=parts, content_type=content_type, headers=headers, deadline=deadline
        )

    def describe(self) -> dict[str, Any]:
        """Return the daemon's document of the model: settings, workers, batches so far."""
        return self.client.describe(self.name)

    def log(self) -> str:
        """Return what the model's workers have printed, with the tracebacks of failed requests."""
        logs = logs_dir(self._daemon.state_dir).glob(f"{self.name}@*.log")
        texts = [log.read_text("utf-8", errors="replace") for log in sorted(logs)]
        return "".join(f"{printed(line)}\n" for text in texts for line in text.split("\n")[:-1])

    def close(self) -> None:
        """Let running requests finish, and end the daemon with its workers. May be called again."""
        self.client.close()
        self._daemon.stop()


def serve(
    target: Callable[..., Any] | str | os.PathLike[str],
    *,
    name: str | None = None,
    handler: str | None = None,
    batch_size: int | None = None,
    max_delay: float | None = None,
    workers: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ServedModel:
    """Serve a model in a daemon of its own, and wait until its workers are ready.

        with tsctl.serve(handle, batch_size=8) as model:
            model.predict("hello")

    The daemon listens on a Unix socket in a folder that only this user can enter, and on no TCP port. It ends with the
    block, and with this process however that ends.

    Args:
        target: a function or class that is a handler; or what `tsctl serve` takes: the path of a handler
            (`handler.py:function`), a model, an archive or a directory, or `module:attribute`. A function of a
            notebook, of `__main__` or within a function needs `pip install 'tsctl[notebook]'`.
        name: instead of the target's own.
        handler: instead of the target's own; for paths only.
        batch_size: the largest batch; None is what the handler or archive says, or at most 32 for typed handlers, 8 for
            files.
        max_delay: seconds that a request waits at most for others to form a batch.
        workers: processes, each of which loads the model; None is what the archive says, or 1.
        settings: further parameters of `POST /models`, such as `{"response_timeout": 10}`.

    Raises:
        ServeFailed: the daemon does not start, or the target cannot be served; the message holds the traceback of a
            handler that does not load.
        ValueError: a handler is given for a function or class.
    """
    try:
        daemon = PrivateDaemon(ARGUMENTS, environment=own_environment(os.environ))
    except NotStarted as error:
        told = (f"the daemon did not start: {error}", error.hint, error.details)
        raise ServeFailed("\n".join(filter(None, told))) from None
    try:
        model = _registered(daemon, target, name, handler, batch_size, max_delay, workers, settings)
    except BaseException:
        daemon.stop()
        raise
    return model


def _registered(
    daemon: PrivateDaemon,
    target: Callable[..., Any] | str | os.PathLike[str],
    name: str | None,
    handler: str | None,
    batch_size: int | None,
    max_delay: float | None,
    workers: int | None,
    settings: Mapping[str, Any] | None,
) -> ServedModel:
    place: str | os.PathLike[str]
    if isinstance(target, (str, os.PathLike)):
        # A path, even if it looks like a name: a private daemon has no model store.
        place = target if "://" in os.fspath(target) else Path(target)
    elif handler is not None:
        raise ValueError("`handler` is for paths; a function or class is its own handler")
    else:
        place = daemon.folder / "handler"
        place.mkdir(mode=0o700)
        place = place / write(target, place)
        name = name or name_of(target)
    with Client(daemon.socket) as client:
        try:
            client.register(
                place, name=name, handler=handler, workers=workers, batch_size=batch_size, max_delay=max_delay,
                settings=settings,
            )  # fmt: skip
            (found,) = client.models()
        except ErrorAnswer as error:
            raise ServeFailed(f"`{_shown(target)}` cannot be served: {error.message}") from None
        except ValueError as error:
            raise ServeFailed(f"`{_shown(target)}` cannot be served: {error}") from None
    return ServedModel(daemon, found)


def _shown(target: Any) -> str:
    return str(getattr(target, "__qualname__", target))
