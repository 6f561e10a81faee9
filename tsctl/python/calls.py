"""A request to be sent, whichever client sends it; and when it is sent again.

A call is repeated for one reason only: it was answered 503 with `Retry-After`, which asks for that. A connection that
broke may have broken after the request was run: whether to send it again is for the caller to decide.
"""

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from tsctl.python.answers import ReceivedAnswer, retry_after
from tsctl.python.errors import DeadlineExceeded, UnreadableAnswer
from tsctl.python.inputs import EncodedInput, encode, encode_parts
from tsctl.python.transport.address import DaemonAddress


def parameters_of(target: str | os.PathLike[str], directory: Path) -> dict[str, Any]:
    """Return the parameters of `POST /models` for a target; a relative path begins at `directory`.

    Raises:
        ValueError: there is nothing there, or it cannot be served; the message ends with the remedy.
    """
    # Here: the doors read Python files, which costs 20 ms and is for registrations only.
    from tsctl.daemon.targets import MODULE, TargetError, checked_target, split_function

    text = os.fspath(target)
    if "://" in text:
        return {"url": text}
    known = isinstance(target, os.PathLike) or "/" in text or MODULE.fullmatch(text)
    if not known and not os.path.exists(directory / os.path.expanduser(split_function(text)[0])):
        return {"url": text}  # a name in the daemon's model store
    try:
        return checked_target(text, directory).parameters()
    except TargetError as error:
        raise ValueError(f"{error.message}; {error.hint}" if error.hint else error.message) from None


REPEAT_FOR = 10.0  # seconds: how long a call without a deadline is repeated while the daemon is overloaded
LEAST_WAIT = 0.05  # seconds, whatever `Retry-After` says: its date may be past by this machine's clock
SPREAD = 0.25  # of `Retry-After`, so that clients that were refused together do not return together
_DEADLINE = "x-request-deadline-ms"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, section 5.6.2
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


class Call(NamedTuple):
    """A request; `target` is the path with its query."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""


class CallTime(NamedTuple):
    """The time that a call has, on the clock `time.monotonic`.

    Attributes:
        ends: when the answer must be complete; infinite without a deadline.
        repeats_until: when the call is not sent again.
    """

    ends: float
    repeats_until: float

    def left(self, now: float) -> float | None:
        """Return the seconds until the deadline, None without one.

        Raises:
            DeadlineExceeded: the deadline has passed.
        """
        if self.ends == math.inf:
            return None
        if now >= self.ends:
            raise DeadlineExceeded("the deadline passed before the answer was complete")
        return self.ends - now

    def wait(self, answer: ReceivedAnswer, now: float, chance: float) -> float | None:
        """Return the seconds after which to send the call again; None if it is not sent again.

        Args:
            chance: a random number from 0 to 1.
        """
        after = retry_after(answer.status, answer.headers)
        if after is None:
            return None
        after = max(after, LEAST_WAIT) * (1 + SPREAD * chance)
        return after if now + after < self.repeats_until else None


def time_of(deadline: float | None, now: float) -> CallTime:
    """Return the time of a call that begins now.

    Args:
        deadline: seconds for the whole call, with its repetitions; None for no limit.

    Raises:
        ValueError: the deadline is not a number of more than 0 seconds.
    """
    if deadline is None:
        return CallTime(math.inf, now + REPEAT_FOR)
    if not 0 < deadline < math.inf:
        raise ValueError(f"deadline is {deadline!r}; expected a number of seconds, more than 0, or None")
    return CallTime(now + deadline, now + deadline)


def request_head(call: Call, address: DaemonAddress, left: float | None) -> bytes:
    """Write the request line and the headers of a call.

    Args:
        left: seconds that the daemon is told to have; None without a deadline.

    Raises:
        ValueError: a header cannot be sent.
    """
    headers = {"Host": address.host_header} | call.headers
    if left is not None:
        headers[_DEADLINE] = str(max(1, int(left * 1000)))
    if call.body or call.method in ("POST", "PUT", "PATCH"):
        headers["Content-Length"] = str(len(call.body))
    for name, value in headers.items():
        if _TOKEN.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            raise ValueError(f"the header {name!r} cannot be sent: {value!r}")
    lines = [
        f"{call.method} {address.prefix}{call.target} HTTP/1.1",
        *(f"{k}: {v}" for k, v in headers.items()),
        "",
        "",
    ]
    try:
        return "\r\n".join(lines).encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError("a header holds characters that HTTP cannot send") from None


def predict(
    model: str,
    value: Any,
    parts: Mapping[str, Any] | None,
    content_type: str | None,
    headers: Mapping[str, str] | None,
) -> Call:
    """Return a prediction; arguments as in `Client.predict`."""
    if parts is not None and (value is not None or content_type is not None):
        raise ValueError("`parts` replaces the input and its content type; give one or the other")
    body: EncodedInput = encode(value, content_type) if parts is None else encode_parts(parts)
    own = {"Content-Type": body.content_type} if body.content_type else {}
    return Call("POST", f"/predictions/{model_path(model)}", own | dict(headers or {}), body.content)


def register(
    target: str | os.PathLike[str],
    name: str | None,
    handler: str | None,
    workers: int | None,
    batch_size: int | None,
    max_delay: float | None,
    replace: bool,
    settings: Mapping[str, Any] | None,
) -> Call:
    """Return a registration; arguments as in `Client.register`.

    Raises:
        ValueError: there is nothing at the target's path, or it cannot be served.
    """
    given = parameters_of(target, Path.cwd())
    given |= {name: value for name, value in (("model_name", name), ("handler", handler)) if value is not None}
    given |= {"fallback_workers": 1} if workers is None else {"initial_workers": workers}
    given |= {
        "batch_size": batch_size,
        "max_batch_delay": None if max_delay is None else round(max_delay * 1000, 3),
        "replace": True if replace else None,
        "synchronous": True,
        "warnings": True,  # and the settings in force
    }
    return manage("POST", "/models", **given | dict(settings or {}))


def unregister(model: str) -> Call:
    return manage("DELETE", f"/models/{model_path(model)}")


def scale(model: str, workers: int) -> Call:
    return manage("PUT", f"/models/{model_path(model)}", min_worker=workers, max_worker=workers, synchronous=True)


def describe(model: str) -> Call:
    return manage("GET", f"/models/{model_path(model)}")


def models(page: str | None) -> Call:
    return manage("GET", "/models", next_page_token=page)


def manage(method: str, path: str, **parameters: Any) -> Call:
    """Return a management request; parameters that are None are left out."""
    given = {name: _text(value) for name, value in parameters.items() if value is not None}
    return Call(method, path + ("?" + urlencode(given) if given else ""), {})


def other_address(call: Call, address: DaemonAddress) -> str:
    """Return what is told where an address does not know the path of a call: which kind of address has it."""
    if call.target.startswith("/predictions/"):
        own, other = "answers no predictions", "the inference address"
    else:
        own, other = "manages no models", "the management address"
    if address.prefix:
        own += f", or a proxy must remove `{address.prefix}` from the path"
    return f"{address} {own}: use {other}, which `tsctl status` names if there is one, or the control socket"


def model_path(model: str) -> str:
    """Return `MODEL` or `MODEL/VERSION` as a path.

    Raises:
        ValueError: the text is neither.
    """
    parts = model.split("/")
    if len(parts) > 2 or not all(parts):
        raise ValueError(f"`{model}` is neither MODEL nor MODEL/VERSION")
    return "/".join(quote(part, safe="") for part in parts)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def token_headers(token: str | None) -> dict[str, str]:
    """Return the header that carries a token.

    Raises:
        ValueError: the token holds what a header cannot.
    """
    if token is None:
        return {}
    if not token or not token.isascii() or not token.isprintable() or token != token.strip():
        raise ValueError(
            "the token is empty, or holds what a header cannot: spaces around it, or other than printable ASCII"
        )
    return {"Authorization": f"Bearer {token}"}


def as_document(value: Any) -> dict[str, Any]:
    """Check that an answer of the management API is a document.

    Raises:
        UnreadableAnswer: the answer is something else, so its sender is not a daemon.
    """
    if not isinstance(value, dict):
        raise UnreadableAnswer("the answer is not a document of a daemon's management API")
    return value
