"""The head of a gRPC call: its metadata, read as an HTTP request's headers are."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import msgspec

from tsctl.daemon.api.auth import matches
from tsctl.daemon.api.submission import budget_of, is_low
from tsctl.daemon.core.client import LimitedClient
from tsctl.daemon.core.errors import BadRequest, MissingToken, WrongToken
from tsctl.daemon.core.job import TimeBudget
from tsctl.daemon.http.deadline_header import HEADER, PRIORITY_HEADER, read_budget
from tsctl.daemon.http.messages import new_request_id
from tsctl.daemon.http.parsing.head import LONGEST_ID
from tsctl.daemon.models.routing.steering import VERSION_HEADER

CALL_DEADLINE = "the call's deadline"
_REQUEST_ID = "x-request-id"
_BEARER = "bearer "
_OWN = ("authorization", _REQUEST_ID, HEADER, PRIORITY_HEADER, VERSION_HEADER)


class CallHead(msgspec.Struct, frozen=True):
    """The head of one call.

    Attributes:
        method: the full name of the called method, such as `/package.Service/Call`.
        id: as the client chose it, or a new one.
        headers: the metadata as text, for the handler; without a token of ours, and without binary values.
        began, received: when the call arrived, and when its message was complete, on the daemon's clock.
        remaining: seconds from `began` until the client gives up; None without a deadline.
        low_priority: others go first, for a while.
        client: the caller, if its key is known; None where none is required.
        model_version: of `x-model-version` in the metadata, None without.
        peer: the client's address and port.
        invalid: why the deadline or the priority in the metadata is invalid, empty if both are valid. A prediction is
            refused for it when its model is known, and counts for that; no other call heeds them.
        stranger: the caller has shown no token and no key, where others have to: models are not named to it.
    """

    method: str
    id: str
    headers: tuple[tuple[str, str], ...]
    began: float
    received: float
    remaining: float | None
    low_priority: bool
    client: LimitedClient | None = None
    model_version: str | None = None
    peer: str = ""
    invalid: str = ""
    stranger: bool = False

    def may_see(self, name: str) -> bool:
        """Return whether a list may name a model to the caller."""
        return not self.stranger and (self.client is None or self.client.may_use(name))

    def check_model(self, name: str) -> None:
        """Raise ModelNotAllowed if the caller's key does not allow a model."""
        if self.client is not None:
            self.client.check_model(name)

    def of_next(self, now: float) -> "CallHead":
        """Return the head of a further request in the same call, which has come now."""
        left = None if self.remaining is None else max(0.001, self.remaining - (now - self.began))
        return msgspec.structs.replace(self, id=new_request_id(), began=now, received=now, remaining=left)

    def of_stranger(self) -> "CallHead":
        """Return the head of a call of which nobody knows who makes it."""
        return msgspec.structs.replace(self, stranger=True)

    def with_headers(self, *headers: tuple[str, str]) -> "CallHead":
        return msgspec.structs.replace(self, headers=(*self.headers, *headers)) if headers else self

    def budget(self, most: float) -> TimeBudget | None:
        """Return the time that the call may take: the client's deadline, or the model's limit if that is less.

        Args:
            most: the model's limit in seconds, 0.0 for none.
        """
        return budget_of(self.remaining, most, self.began, CALL_DEADLINE)


class _Metadata(NamedTuple):
    """The metadata of equal calls, read once; `id` is empty if the client has not chosen one."""

    id: str
    headers: tuple[tuple[str, str], ...]
    budget: float | None
    low_priority: bool
    model_version: str | None
    invalid: str


def read_head(
    method: str,
    metadata: tuple[tuple[str, str | bytes], ...],
    remaining: float | None,
    now: float,
    tokens: tuple[str, ...] = (),
    client: LimitedClient | None = None,
    peer: str = "",
    began: float | None = None,
) -> CallHead:
    """Read the head of a call whose message is complete.

    Args:
        remaining: seconds from now until the deadline that gRPC carries; None without one.
        tokens: the accepted ones, which handlers must not see.
        client: the caller, whose key they must not see either; None if unknown.
        peer: the client's address and port.
        began: when the call arrived; None for now.
    """
    if began is None:
        began = now
    if remaining is not None:
        remaining += now - began
    read = _read(metadata, tokens)
    if read.budget is not None:
        remaining = read.budget if remaining is None else min(read.budget, remaining)
    named, headers, low = read.id or new_request_id(), read.headers, read.low_priority
    if client is not None:
        headers = tuple(pair for pair in headers if pair[0] != "authorization")
    return CallHead(method, named, headers, began, now, remaining, low, client, read.model_version, peer, read.invalid)


@lru_cache(maxsize=64)  # a client sends the same with each call, and reading it again takes 8 µs
def _read(metadata: tuple[tuple[str, str | bytes], ...], tokens: tuple[str, ...]) -> _Metadata:
    texts = [(key, value) for key, value in metadata if isinstance(value, str)]
    own = {key: value for key, value in texts if key in _OWN}
    hidden = matches(_bearer(own.get("authorization", "")), tokens)
    headers = tuple(pair for pair in texts if not (hidden and pair[0] == "authorization"))
    named = own.get(_REQUEST_ID, "")
    chosen = named if len(named) <= LONGEST_ID and named.isascii() and named.isprintable() else ""
    budget: float | None = None
    low, invalid = False, ""
    try:
        budget = read_budget(own[HEADER]) if HEADER in own else None
        low = is_low(own.get(PRIORITY_HEADER))
    except BadRequest as error:
        invalid = str(error)
    return _Metadata(chosen, headers, budget, low, own.get(VERSION_HEADER) or None, invalid)


def bearer_of(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """Return the bearer token of a call, or an empty string."""
    shown = ""
    for key, value in metadata:
        if key == "authorization" and isinstance(value, str):
            shown = _bearer(value)
    return shown


def check_call(shown: str, tokens: tuple[str, ...]) -> None:
    """Reject a call whose token is not one of these.

    Raises:
        MissingToken: the call has no token.
        WrongToken: its token is none of these.
    """
    if not shown:
        raise MissingToken
    if not matches(shown, tokens):
        raise WrongToken


def _bearer(value: str) -> str:
    return value[len(_BEARER) :].strip() if value[: len(_BEARER)].lower() == _BEARER else ""
