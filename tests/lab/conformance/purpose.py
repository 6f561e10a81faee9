"""Intended differences, with reasons: purposes.yaml is the table, here are its rules, which look at both answers."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.lab.conformance.compare import MISSING, Difference, Purpose

TABLE = Path(__file__).with_name("purposes.yaml")
Rule = Callable[[Difference], bool]


def stands(*pairs: tuple[int, int]) -> Rule:
    """These statuses, theirs and ours; the answers are of different kinds, so all of them may differ."""
    return lambda difference: (difference.theirs.status, difference.ours.status) in pairs


def differs(where: str, their_value: object, our_value: object) -> Rule:
    """Just this value, wherever it ends so."""
    return lambda difference: (
        difference.where.endswith(where) and difference.their_value == their_value and difference.our_value == our_value
    )


def stays_open(difference: Difference) -> bool:
    return difference.theirs.status >= 400 and (
        differs("closed", True, False)(difference) or differs("header connection", "close", "keep-alive")(difference)
    )


def says_json(difference: Difference) -> bool:
    return difference.ours.status < 400 and differs("header content-type", MISSING, "application/json")(difference)


def says_more(difference: Difference) -> bool:
    theirs, ours = str(difference.their_value).rstrip("."), str(difference.our_value)
    return difference.where == "body.message" and ours.startswith(theirs) and len(ours) > len(theirs)


def worker_died(difference: Difference) -> bool:
    ours = str(difference.our_value)
    died = "The worker died while it ran this request: ", "The worker did not answer within the response timeout of "
    return differs("body.message", "Worker died.", ours)(difference) and ours.startswith(died)


def no_sequences(difference: Difference) -> bool:
    theirs, ours = str(difference.their_value), str(difference.our_value)
    return (
        difference.where == "body.message"
        and " If this is a sequence inference, " in theirs
        and theirs.replace(' Version 1.0"', "").startswith(ours)
        and ours.endswith("Please use scale workers API to add workers.")
    )


def oip_error(difference: Difference) -> bool:
    """The member `error` of an error's document, with the text of `message`."""
    if difference.where != "body.error" or difference.their_value != MISSING:
        return False
    return bool(difference.our_value == json.loads(difference.ours.body)["message"])


def own_key(difference: Difference) -> bool:
    return difference.where.endswith(".tsctl") and difference.their_value == MISSING


def client_headers(difference: Difference) -> bool:
    name = difference.where.rpartition(".")[2].lower()
    return ".headers." in difference.where and name in ("content-length", "transfer-encoding", "expect")


def described(difference: Difference) -> bool:
    parts = ("body.info", "body.paths", "body.components")
    return difference.theirs.status == difference.ours.status == 200 and difference.where.startswith(parts)


def fewer_workers(difference: Difference) -> bool:
    ends = (".minWorkers", ".maxWorkers", ".responseTimeout", ".startupTimeout", ".workers", "body.status")
    return difference.theirs.status == difference.ours.status == 200 and difference.where.endswith(ends)


def queue_full(difference: Difference) -> bool:
    ours = str(difference.our_value)
    full = difference.where == "body.message" and ours.startswith("The queue of model ") and " is full: " in ours
    return (difference.theirs.status, difference.ours.status) == (503, 503) and (
        full or differs("header retry-after", MISSING, "1")(difference)
    )


def no_token(difference: Difference) -> bool:
    answers = difference.theirs, difference.ours
    return all(b"InvalidKeyException" in answer.body for answer in answers) and stands((400, 401), (400, 403))(
        difference
    )


def message_begins(their_value: str, beginning: str) -> Rule:
    return lambda difference: (
        difference.where == "body.message"
        and difference.their_value == their_value
        and str(difference.our_value).startswith(beginning)
    )


def no_number(difference: Difference) -> bool:
    return difference.our_value is None and not math.isfinite(difference.their_value)


def other_importances(difference: Difference) -> bool:
    return difference.where in ("body.importances", "body.words")


def further_samples(difference: Difference) -> bool:
    return difference.where.startswith("body.") and difference.their_value == MISSING


def without_value(difference: Difference) -> bool:
    missing = difference.our_value == MISSING and difference.where.startswith("body.")
    return missing and '"samples": {}' in json.dumps(difference.their_value)


def _rule(row: dict[str, Any]) -> Rule:
    if "stands" in row:
        return stands(*((theirs, ours) for theirs, ours in row["stands"]))
    if "differs" in row:
        return differs(*row["differs"])
    if "message_begins" in row:
        return message_begins(*row["message_begins"])
    rule: Rule = globals()[row["rule"]]
    return rule


PURPOSES = tuple(
    Purpose(row["why"], _rule(row), frozenset(row.get("cases", ())), row.get("always", True))
    for row in yaml.safe_load(TABLE.read_text())
)
