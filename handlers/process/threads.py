"""The number of threads of one operation: in torch, and in the BLAS of NumPy.

The daemon gives each worker a share of the cores. A handler that sets another number while it loads, as in a script,
by `torch.set_num_threads` or OMP_NUM_THREADS, keeps its own.
"""

import os
import sys
from typing import NamedTuple

from tsctl.handlers.orders import THREAD_VARIABLES

_handlers_own = 0  # 0: the handler has chosen none


def announce_threads(count: int) -> None:
    """Set the number of threads for libraries loaded from now on, and for child processes."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(count)))


class ThreadCounts(NamedTuple):
    """The numbers of threads in force: torch's, and the one that libraries find when they are loaded; 0 if unknown."""

    torch: int
    announced: int


def threads_in_force() -> ThreadCounts:
    """Return the numbers of threads in force."""
    torch, text = sys.modules.get("torch"), os.environ.get(THREAD_VARIABLES[0], "")
    return ThreadCounts(
        0 if torch is None else torch.get_num_threads(), int(text) if text.isascii() and text.isdigit() else 0
    )


def keep_handlers_choice(before: ThreadCounts) -> int:
    """Return the number of threads that a handler has set while it loaded; it counts from now on. 0: it has set none.

    Args:
        before: what was in force before it was loaded.
    """
    global _handlers_own
    now = threads_in_force()
    expected = before.torch or before.announced  # a torch that the handler has loaded has read what was announced
    _handlers_own = 0
    if now.torch and expected and now.torch != expected:
        _handlers_own = now.torch
    elif now.announced != before.announced:  # which a library that was loaded before has not read
        _handlers_own = now.announced
    return _handlers_own


def handlers_choice() -> int:
    """Return the number of threads that the handler has set; 0 if it has set none."""
    return _handlers_own


def set_threads(count: int) -> None:
    """Set the number of threads of libraries already loaded, which no longer read their environment."""
    count = _handlers_own or count
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(count)
    if "numpy" in sys.modules:
        from threadpoolctl import ThreadpoolController

        for library in ThreadpoolController().select(user_api="blas").lib_controllers:
            library.set_num_threads(count)
