"""tsctl: the command line, and what programs import: `tsctl.Client`, `tsctl.AsyncClient`, `tsctl.serve`, `tsctl.Audio`.

Importing this package imports nothing else: each name is loaded when it is first used.

The command line talks to the daemon over the control socket, and imports neither torch nor asyncio. Heavier work runs
in a separate process that prints JSON lines: `tsctl.loadgen`, the load generator.

In the project `tsctl.daemon` and `tsctl.handlers` are links to the folders beside this one.
"""

# Not `typing.TYPE_CHECKING`: the import of typing takes 4 ms. Type checkers know the name.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from tsctl.handlers.requests.audio import Audio
    from tsctl.python.async_client import AsyncClient
    from tsctl.python.client import Client
    from tsctl.python.errors import (
        CannotConnect,
        ConnectionLost,
        DeadlineExceeded,
        ErrorAnswer,
        Overloaded,
        ServeFailed,
        TsctlError,
        UnreadableAnswer,
    )
    from tsctl.python.serving.serve import ServedModel, serve

    __version__: str

__all__ = [
    "AsyncClient",
    "Audio",
    "CannotConnect",
    "Client",
    "ConnectionLost",
    "DeadlineExceeded",
    "ErrorAnswer",
    "Overloaded",
    "ServeFailed",
    "ServedModel",
    "TsctlError",
    "UnreadableAnswer",
    "serve",
]

_PLACES = {
    "AsyncClient": "tsctl.python.async_client",
    "Audio": "tsctl.handlers.requests.audio",
    "Client": "tsctl.python.client",
    "ServedModel": "tsctl.python.serving.serve",
    "serve": "tsctl.python.serving.serve",
}


if not TYPE_CHECKING:  # type checkers know the names above, and no others

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("tsctl")
        if name not in __all__:
            raise AttributeError(f"module `tsctl` has no attribute `{name}`")
        from importlib import import_module

        value = getattr(import_module(_PLACES.get(name, "tsctl.python.errors")), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
