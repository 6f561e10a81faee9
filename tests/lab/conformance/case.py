"""A case: requests sent to both servers, in order, the models they need, and what TorchServe has answered.

A case is data, a file of cases/ for each group. It is sent as bytes, so that both servers get the same ones, header for
header. The attributes of what is here are the members of such a file.
"""

import base64
from pathlib import Path
from typing import Any

import msgspec
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


class Variant(msgspec.Struct, frozen=True):
    """One way of setting both servers, of variants.yaml.

    Attributes:
        properties: of config.properties.
        tokens: both ask for tokens.
    """

    properties: dict[str, Any] = {}
    tokens: bool = False

    def config(self) -> str:
        """The text of config.properties."""
        text = "".join(f"{key}={value}\n" for key, value in (_OF_ALL | self.properties).items())
        return text.replace("<archives>", str(ARCHIVES))


_TABLE = yaml.safe_load(Path(__file__).with_name("variants.yaml").read_text())
_OF_ALL = _TABLE.pop("all")
VARIANTS = msgspec.convert(_TABLE, dict[str, Variant])


class Message(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What has a body: text, or bytes as base64, and how often that is repeated."""

    body: str = ""
    base64: str = ""
    times: int = 1

    @property
    def data(self) -> bytes:
        return base64.b64decode(self.base64) or self.body.encode() * self.times


class Recorded(Message, kw_only=True):
    """What TorchServe 0.12.0 has answered, without what differs from run to run (scrub.py)."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    closed: bool

    @property
    def answer(self) -> Answer:
        return Answer(self.status, self.reason, tuple(self.headers), self.data, self.closed)


class Step(Message, kw_only=True):
    """One request, and its answer.

    Attributes:
        request: METHOD TARGET.
        headers: lines.
        to: which address it goes to: inference, management (here: the control socket) or metrics.
        raw: the bytes themselves, instead of the rest.
        until: ask again until the answer's body holds this text; the last answer counts.
        patience: seconds to wait for an answer.
        background: the next request does not wait for the answer to this one.
    """

    answer: Recorded
    request: str = ""
    headers: list[str] = []
    to: str = "inference"
    raw: str = ""
    until: str = ""
    patience: float = 60.0
    background: bool = False

    def encode(self) -> bytes:
        """The request's bytes; a body brings its `Content-Length` with it."""
        if self.raw:
            return self.raw.encode()
        lines = [f"{self.request} HTTP/1.1", "Host: localhost", *self.headers]
        given = {line.partition(":")[0].lower() for line in lines}
        if not given & {"content-length", "transfer-encoding"} and (self.data or not self.request.startswith("GET ")):
            lines.append(f"Content-Length: {len(self.data)}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + self.data


class Case(msgspec.Struct):
    """A claim about both servers.

    Attributes:
        uses: models of models.py that are registered before, with one worker, if they are not yet.
    """

    steps: list[Step]
    uses: str = ""


class Group(msgspec.Struct):
    """Cases that are told together, by what each shows.

    Attributes:
        fresh: every model is unregistered before, so that lists are short.
        variant: how the servers are set.
    """

    title: str
    cases: dict[str, Case]
    fresh: bool = False
    variant: str = "plain"


GROUPS = {name: msgspec.json.decode((CASES / f"{name}.json").read_bytes(), type=Group) for name in NAMES}
