"""The C++ compiler that `compile` needs on a CPU. Importable without torch."""

import os
import shutil

COMPILERS = ("g++", "clang++")


def find_compiler() -> str | None:
    """Return the C++ compiler: the one in CXX if set, else g++, else clang++; None if it is not installed."""
    named = os.environ.get("CXX")
    return next((name for name in ((named,) if named else COMPILERS) if shutil.which(name.split()[0])), None)
