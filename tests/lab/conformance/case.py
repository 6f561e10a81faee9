"""A case: requests sent to both servers, in order, and the models they need.

A case is data. It is sent as bytes, so that both servers get the same ones, header for header.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.lab.conformance.variants import PLAIN, Variant


@dataclass(frozen=True, slots=True)
class Step:
    """One request.

    Attributes:
        management: it goes to the management address (here: the control socket).
        raw: the bytes themselves, instead of the rest.
        until: ask again until the answer's body holds this text; the last answer counts.
        patience: seconds to wait for an answer.
        background: the next request does not wait for the answer to this one.
        metrics: it goes to the metrics address.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    management: bool = False
    raw: bytes = b""
    until: str = ""
    patience: float = 60.0
    background: bool = False
    metrics: bool = False

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
    variant: Variant = PLAIN


def case(name: str, *steps: Step, uses: str = "") -> Case:
    """Make a case; `uses` separates models by spaces."""
    return Case(name, steps, tuple(uses.split()))


def ask(
    target: str,
    body: bytes | str = b"",
    method: str = "POST",
    *,
    kind: str = "",
    headers: Mapping[str, str] | None = None,
) -> Step:
    """A request to the inference address; `kind` is its content type."""
    data = body.encode() if isinstance(body, str) else body
    given = {"Content-Type": kind} if kind else {}
    return Step(method, target, tuple((given | dict(headers or {})).items()), data)


def ask_json(target: str, document: Any, **further: Any) -> Step:
    return ask(target, json.dumps(document), kind="application/json", **further)


def manage(method: str, target: str, document: Any = None, *, until: str = "") -> Step:
    """A request to the management address, with a JSON body if there is a document."""
    if document is None:
        return Step(method, target, management=True, until=until)
    kind = (("Content-Type", "application/json"),)
    return Step(method, target, kind, json.dumps(document).encode(), management=True)


def measured(*names: str, method: str = "GET", path: str = "/metrics") -> Step:
    """A request to the metrics address, for the metrics of these names or for all."""
    query = "&".join(f"name[]={name}" for name in names)
    return Step(method, f"{path}?{query}" if names else path, metrics=True)
