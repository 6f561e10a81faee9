"""Take out of an answer what differs from run to run, so that it can be kept and compared."""

import json
import re
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


UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?|\d\d/\d\d/\d{4} \d\d:\d\d:\d\d")
_NUMBERS = re.compile(r'("(?:pid|memoryUsage)"\s*:\s*)-?\d+')
_WORKER = re.compile(r'("id"\s*:\s*)"9\d\d\d"')  # counted over all models by one, over one model by the other
_WORKER_NAME = re.compile(r"\bW-9\d\d\d-")
_TRACEBACK_FILE = re.compile(r'File "[^"]*"')
_UNPACKED = re.compile(r"(<temporary>|<state>)/models/[0-9a-zA-Z_.-]+")


def _without_prose(text: str) -> str:
    """Leave out the sentences of an API description: they are TorchServe's own, and no client reads them."""
    if '"openapi"' not in text[:200]:
        return text

    def bare(value: object) -> object:
        if isinstance(value, dict):
            return {key: bare(each) for key, each in value.items() if key not in ("description", "title")}
        return [bare(each) for each in value] if isinstance(value, list) else value

    return json.dumps(bare(json.loads(text)), indent=2)


def scrub(answer: Answer, private: Mapping[str, str]) -> Answer:
    """Replace what belongs to one run.

    Args:
        private: text of this run → the word that stands for it; longest first (paths, the host's
            name, ports). One that is a number is replaced where it stands alone: a port's digits may
            be among those of a time.
    """

    def clean(text: str) -> str:
        for secret, word in private.items():
            if secret.isdigit():
                text = re.sub(rf"(?<![\w.]){secret}(?!\w|\.\d)", word, text)
            else:
                text = text.replace(secret, word)
        text = UUID.sub("<uuid>", text)
        text = TIME.sub("<time>", text)
        text = _NUMBERS.sub(r"\g<1>0", text)
        text = _WORKER.sub(r'\g<1>"<worker>"', text)
        text = _WORKER_NAME.sub("W-<worker>-", text)
        text = _TRACEBACK_FILE.sub('File "<file>"', text)
        return _UNPACKED.sub("<unpacked>", text)

    try:
        text = clean(answer.body.decode())
        if "version=0.0.4" in (answer.header("content-type") or ""):
            text = shape(text)
        body = _without_prose(text).encode()
    except UnicodeDecodeError:
        body = answer.body  # bytes that a handler answered with
    headers = tuple((name, clean(value)) for name, value in answer.headers if name.lower() != "content-length")
    return replace(answer, headers=headers, body=body)
