"""How many threads one operation may use: in torch, and in the BLAS of NumPy."""

import os
import sys

from handlers.orders import THREAD_VARIABLES


def announce_threads(count: int) -> None:
    """Tell libraries that are loaded from now on, and further processes."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(count)))


def set_threads(count: int) -> None:
    """Tell the libraries that are loaded already, which have read their environment once and for all."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(count)
    if "numpy" in sys.modules:
        from threadpoolctl import ThreadpoolController

        for library in ThreadpoolController().select(user_api="blas").lib_controllers:
            library.set_num_threads(count)
