"""Take out of an answer what differs from run to run, as it was taken out of the recorded ones."""

import json
import re
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.lab.conformance.talk import Answer

COUNTED = frozenset({"ts_inference_requests_total"})  # the values of the others are times, or count other cases too


def shape(text: str) -> str:
    """Make the document: family → type, and its samples as `LABEL=VALUE,…`, each with its value if that is counted.

    Labels have no order, and what a histogram is made of is one sample.

    Raises:
        ValueError: a line is neither a comment nor a sample.
    """
    document: dict[str, Any] = {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if f"# TYPE {family.name}_total " in text else family.name
        samples: dict[str, float | None] = {}
        for sample in family.samples:
            labels = sorted(f"{key}={value}" for key, value in sample.labels.items() if key != "le")
            samples[",".join(labels)] = sample.value if name in COUNTED else None
        document[name] = {"type": family.type, "samples": samples}
    return json.dumps(document, indent=1, sort_keys=True)


# What belongs to one run, and the word for it. One server counts workers over all models, the other over one model.
_OF_A_RUN = (
    (re.compile(re.escape(socket.gethostname())), "<host>"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE), "<uuid>"),
    (
        re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?|\d\d/\d\d/\d{4} \d\d:\d\d:\d\d"),
        "<time>",
    ),
    (re.compile(r'("(?:pid|memoryUsage)"\s*:\s*)-?\d+'), r"\g<1>0"),
    (re.compile(r'("id"\s*:\s*)"9\d\d\d"'), r'\g<1>"<worker>"'),
    (re.compile(r"\bW-9\d\d\d-"), "W-<worker>-"),
)


def _without_prose(text: str) -> str:
    """Leave out the sentences of an API description: they are TorchServe's own, and no client reads them."""
    if '"openapi"' not in text[:200]:
        return text

    def bare(value: object) -> object:
        if isinstance(value, dict):
            return {key: bare(each) for key, each in value.items() if key not in ("description", "title")}
        return [bare(each) for each in value] if isinstance(value, list) else value

    return json.dumps(bare(json.loads(text)), indent=2)


def scrub(answer: Answer, tokens: Mapping[str, str]) -> Answer:
    """Replace what belongs to one run.

    Args:
        tokens: what stands for a token in a case → the token.
    """

    def clean(text: str) -> str:
        for word, token in tokens.items():
            text = text.replace(token, word)
        for pattern, word in _OF_A_RUN:
            text = pattern.sub(word, text)
        return text

    try:
        text = clean(answer.body.decode())
        if "version=0.0.4" in (answer.header("content-type") or ""):
            text = shape(text)
        body = _without_prose(text).encode()
    except UnicodeDecodeError:
        body = answer.body  # bytes that a handler answered with
    headers = tuple((name, clean(value)) for name, value in answer.headers if name.lower() != "content-length")
    return replace(answer, headers=headers, body=body)
