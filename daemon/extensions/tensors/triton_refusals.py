"""Triton's extensions that are not served, and are refused by name, over HTTP and gRPC."""

from tsctl.daemon.core.errors import NotServed

# By the first segment of their paths; "trace" also below a model.
_PATHS = {
    "systemsharedmemory": "shared memory: send tensors in the request, as binary data",
    "cudasharedmemory": "shared memory of GPUs: send tensors in the request, as binary data",
    "trace": "Triton's trace settings: `tsctl start --help all` has those of OpenTelemetry",
    "logging": "Triton's settings of its log: set `--log-level` at the start",
}
# The same calls of gRPC's service.
CALLS = {
    **{f"SystemSharedMemory{each}": "systemsharedmemory" for each in ("Status", "Register", "Unregister")},
    **{f"CudaSharedMemory{each}": "cudasharedmemory" for each in ("Status", "Register", "Unregister")},
    "TraceSetting": "trace",
    "LogSettings": "logging",
}


def unserved(word: str) -> NotServed | None:
    """Return the error for a segment of a path of one of them; None for any other."""
    return NotServed(f"tsctl does not serve {_PATHS[word]}.") if word in _PATHS else None
