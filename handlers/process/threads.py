"""The number of threads of one operation: in torch, and in the BLAS of NumPy."""

import os
import sys

from tsctl.handlers.orders import THREAD_VARIABLES


def announce_threads(count: int) -> None:
    """Set the number of threads for libraries loaded from now on, and for child processes."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(count)))


def set_threads(count: int) -> None:
    """Set the number of threads of libraries already loaded, which no longer read their environment."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(count)
    if "numpy" in sys.modules:
        from threadpoolctl import ThreadpoolController

        for library in ThreadpoolController().select(user_api="blas").lib_controllers:
            library.set_num_threads(count)
