"""The real server's answers, as JSON: one file of recorded/ for each group of cases."""

import base64
import json
from pathlib import Path
from typing import Any

from tests.lab.conformance.talk import Answer

RECORDED = Path(__file__).parent / "recorded"
Recording = dict[str, list[Answer]]  # the name of a case → the answers to its steps


def write(group: str, recording: Recording) -> None:
    document = {name: [_document(answer) for answer in answers] for name, answers in recording.items()}
    text = json.dumps(document, indent=1, ensure_ascii=False)
    (RECORDED / f"{group}.json").write_text(text + "\n")


def read(group: str) -> Recording:
    """Read a group's answers; a case that has never been recorded is not in it."""
    path = RECORDED / f"{group}.json"
    document = json.loads(path.read_text()) if path.is_file() else {}
    return {name: [_answer(each) for each in answers] for name, answers in document.items()}


def _document(answer: Answer) -> dict[str, Any]:
    document: dict[str, Any] = {"status": answer.status, "reason": answer.reason, "headers": list(answer.headers)}
    try:
        document["body"] = answer.body.decode()
    except UnicodeDecodeError:
        document["base64"] = base64.b64encode(answer.body).decode()
    return document | {"closed": answer.closed}


def _answer(document: dict[str, Any]) -> Answer:
    body = base64.b64decode(document["base64"]) if "base64" in document else document["body"].encode()
    headers = tuple((name, value) for name, value in document["headers"])
    return Answer(document["status"], document["reason"], headers, body, document["closed"])
