"""The text of /metrics as a document that can be compared: names, types, labels; of values, what is counted."""

import json
import re

_SAMPLE = re.compile(r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)(?: \d+)?")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_PARTS = re.compile(r"_(?:bucket|sum|count)$")
COUNTED = frozenset({"ts_inference_requests_total"})  # the values of the others are times, or count other cases too


def shape(text: str) -> str:
    """Make the document: family → type, and its samples as `LABEL=VALUE,…`, each with its value if that is counted.

    Labels have no order, and what a histogram is made of is one sample.

    Raises:
        ValueError: a line is neither a comment nor a sample.
    """
    families: dict[str, tuple[str, dict[str, float | None]]] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ", 3)
            families[name] = (kind, {})
        elif line and not line.startswith("#"):
            found = _SAMPLE.fullmatch(line)
            if found is None:
                raise ValueError(f"no sample: {line}")
            name = found["name"] if found["name"] in families else _PARTS.sub("", found["name"])
            _, samples = families.setdefault(name, ("untyped", {}))
            labels = sorted(f"{key}={value}" for key, value in _LABEL.findall(found["labels"] or "") if key != "le")
            samples[",".join(labels)] = float(found["value"]) if name in COUNTED else None
    document = {name: {"type": kind, "samples": samples} for name, (kind, samples) in sorted(families.items())}
    return json.dumps(document, indent=1, sort_keys=True)
