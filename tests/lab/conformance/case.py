"""A case: requests sent to both servers, in order, the models they need, and what TorchServe has answered.

A case is data, a file of cases/ for each group. It is sent as bytes, so that both servers get the same ones, header for
header. Of a step in such a file:

    request             METHOD TARGET, to the inference address, or the one of `to`: management, metrics
    headers, body       as lines and text; `base64` instead of `body`, or `times` that it is repeated
    raw                 the bytes themselves, instead of these
    answer              what TorchServe 0.12.0 has answered, without what differs from run to run (scrub.py)

and the other attributes of `Step`. A group is as `Group`, its cases by name.
"""

import base64
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from tests.lab.conformance.models import ARCHIVES
from tests.lab.conformance.talk import Answer

CASES = Path(__file__).parent / "cases"
# In this order they are put to the servers, and told in the page.
NAMES = (
    "bodies", "results", "errors", "routes", "builtin", "explaining", "kserve", "features", "scaling", "listing",
    "registering", "archives", "together", "envelope_body", "envelope_json", "envelope_kserve", "envelope_kservev2",
    "tokens", "configuration", "metrics", "declared",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of setting both servers, of variants.yaml.

    Attributes:
        properties: of config.properties.
        tokens: both ask for tokens.
    """

    properties: Mapping[str, object]
    tokens: bool = False

    def config(self) -> str:
        """The text of config.properties."""
        text = "".join(f"{key}={value}\n" for key, value in self.properties.items())
        return text.replace("<archives>", str(ARCHIVES))


_TABLE = yaml.safe_load(Path(__file__).with_name("variants.yaml").read_text())
_OF_ALL = _TABLE.pop("all")
VARIANTS = {
    name: Variant(_OF_ALL | row.get("properties", {}), row.get("tokens", False)) for name, row in _TABLE.items()
}


@dataclass(frozen=True, slots=True)
class Step:
    """One request.

    Attributes:
        to: which address it goes to: inference, management (here: the control socket) or metrics.
        raw: the bytes themselves, instead of the rest.
        until: ask again until the answer's body holds this text; the last answer counts.
        patience: seconds to wait for an answer.
        background: the next request does not wait for the answer to this one.
        recorded: what TorchServe has answered; None for a request of ours that no case shows.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    to: str = "inference"
    raw: bytes = b""
    until: str = ""
    patience: float = 60.0
    background: bool = False
    recorded: Answer | None = None

    def with_header(self, name: str, value: str) -> "Step":
        return replace(self, headers=(*self.headers, (name, value)))

    def encode(self) -> bytes:
        """The request's bytes; a body brings its `Content-Length` with it."""
        if self.raw:
            return self.raw
        headers = [("Host", "localhost"), *self.headers]
        given = {name.lower() for name, _ in headers}
        if not given & {"content-length", "transfer-encoding"} and (self.body or self.method != "GET"):
            headers.append(("Content-Length", str(len(self.body))))
        lines = [f"{self.method} {self.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + self.body


@dataclass(frozen=True, slots=True)
class Case:
    """A claim about both servers.

    Attributes:
        name: what the case shows; unique within its group.
        uses: models of models.py that are registered before, with one worker, if they are not yet.
    """

    name: str
    steps: tuple[Step, ...]
    uses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that are told together.

    Attributes:
        fresh: every model is unregistered before, so that lists are short.
        variant: how the servers are set.
    """

    name: str
    title: str
    cases: tuple[Case, ...]
    fresh: bool = False
    variant: Variant = VARIANTS["plain"]


def by_variant(names: Collection[str]) -> Iterator[tuple[Variant, list[Group]]]:
    """The groups of these names, by how the servers are set for them."""
    wanted = (group for group in GROUPS if group.name in names)
    for variant, groups in groupby(wanted, key=lambda group: group.variant):
        yield variant, list(groups)


def _bytes(document: Mapping[str, Any]) -> bytes:
    if "base64" in document:
        return base64.b64decode(document["base64"])
    return str(document.get("body", "")).encode() * int(document.get("times", 1))


def _group(name: str) -> Group:
    document = json.loads((CASES / f"{name}.json").read_text())
    cases = tuple(
        Case(title, tuple(map(_step, each["steps"])), tuple(each.get("uses", "").split()))
        for title, each in document["cases"].items()
    )
    return Group(
        name, document["title"], cases, document.get("fresh", False), VARIANTS[document.get("variant", "plain")]
    )  # fmt: skip


def _step(document: dict[str, Any]) -> Step:
    method, _, target = document.get("request", "").partition(" ")
    headers = tuple((name, value) for name, _, value in (each.partition(": ") for each in document.get("headers", ())))
    said = document.get("answer")
    further = {name: document[name] for name in ("to", "until", "patience", "background") if name in document}
    return Step(
        method, target, headers, _bytes(document), raw=document.get("raw", "").encode(),
        recorded=None if said is None else Answer(
            said["status"], said["reason"], tuple((name, value) for name, value in said["headers"]), _bytes(said),
            said["closed"],
        ), **further,
    )  # fmt: skip


GROUPS = tuple(map(_group, NAMES))
