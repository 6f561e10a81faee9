"""The messages of a program to the one that started it: JSON objects, a line each, on stdout."""

import json
from typing import Any


def tell(stage: str, **facts: Any) -> None:
    print(json.dumps({"stage": stage} | facts), flush=True)  # noqa: T201 - the reader is a program
