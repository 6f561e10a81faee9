"""The errors, from the tree of daemon/core/errors.py."""

import inspect
from collections.abc import Iterator

from docs.generate.markdown import code, table
from tsctl.daemon.core import errors as tree


def errors() -> str:
    """Write each error with its status, the type in its JSON, and when it is told."""
    found = sorted(_told(), key=lambda each: (each.status, each.__name__))
    rows = [(str(each.status), each.__name__, code(each.kind), _when(each)) for each in found]
    return f"""# Errors

Errors are JSON with TorchServe's members: `{{"code": 404, "type": "ModelNotFoundException", "message": "…"}}`. Clients may match
on `code` and `type`, which do not change; the message names the thing, the value and, where there is one, the remedy. The
message about a prediction ends with the id of its request, which is in the log, too.

`Retry-After` says when another attempt is worthwhile. Errors of HTTP itself (400, 405, 408, 413, 414, 431, 501, 505) have the
same form.

{table(("status", "error", "`type`", "when"), rows)}
The name in the second column is the class in `daemon/core/errors.py`.
"""


def _told() -> Iterator[type[tree.DaemonError]]:
    for _, each in inspect.getmembers(tree, inspect.isclass):
        if issubclass(each, tree.DaemonError) and each.__name__ not in ("DaemonError", "StartError"):
            yield each


def _when(error: type[tree.DaemonError]) -> str:
    text = (inspect.getdoc(error) or "").partition("\n\n")[0]
    return text + (f" `Retry-After: {error.retry_after}`." if error.retry_after else "")
