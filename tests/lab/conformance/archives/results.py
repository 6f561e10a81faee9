"""A module function `handle`: answers with a value of the type that the request names."""

import torch

VALUES = {
    "bytes": b"\x00\x01raw",
    "bytearray": bytearray(b"array"),
    "str": "né, no quotes",
    "empty str": "",
    "empty bytes": b"",
    "dict": {"a": 1, "b": [1, 2.5, None, True], "c": {"d": "né"}},
    "empty dict": {},
    "list": [1, 2, 3],
    "nested list": [[0.1, 0.2], [0.3]],
    "int": 42,
    "float": 0.1,
    "true": True,
    "none": None,
    "nan": float("nan"),
    "infinity": float("inf"),
    "tuple": (1, 2),
    "set": {1},
    "object": object(),
    "complex": 1j,
    "dict of tensor": {"a": torch.ones(1)},
    "dict of bytes": {"a": b"x"},
    "number keys": {1: "a", 2.5: "b", None: "c"},
    "tuple keys": {(1, 2): "a"},
}


def handle(data, context):
    if data is None:
        return None
    return [VALUES[row["body"]["give"]] for row in data]
