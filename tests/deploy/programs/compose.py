"""Checks a file of Docker's compose by the Compose Specification: a program of its own.

python compose.py FILE; the exit code is 1 if the file is wrong.
"""

import sys
from pathlib import Path

from compose_spec import PyCompose

try:
    PyCompose.from_yaml(Path(sys.argv[1]).read_text()).validate()
except ValueError as error:
    sys.exit(f"{sys.argv[1]}: {error}")
