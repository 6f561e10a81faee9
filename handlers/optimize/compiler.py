"""The compilers that `compile` needs: on a CPU one for C++, on a GPU one for C. Importable without torch."""

import os
import shutil
from collections.abc import Sequence

COMPILERS = ("g++", "clang++")
C_COMPILERS = ("gcc", "clang", "cc")  # as Triton looks for them


def find_compiler() -> str | None:
    """Return the C++ compiler: the one in CXX if set, else g++, else clang++; None if it is not installed."""
    return _find("CXX", COMPILERS)


def find_c_compiler() -> str | None:
    """Return the C compiler: the one in CC if set, else gcc, else clang, else cc; None if it is not installed."""
    return _find("CC", C_COMPILERS)


def _find(variable: str, names: Sequence[str]) -> str | None:
    named = os.environ.get(variable)
    return next((name for name in ((named,) if named else names) if shutil.which(name.split()[0])), None)
