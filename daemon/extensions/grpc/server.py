"""The gRPC servers of the daemon: one for all addresses, on the daemon's own event loop.

A call goes: `Calls.service` finds its method, and rejects a stranger, and a call too many, before the message is read →
the message is read in turn (waiting/incoming_messages.py) → the head is read → the service's own method → the answer,
or a code and a message. So all calls are streams for grpc.aio, which would otherwise read the message first. Fork
support of gRPC is off: workers are forked from templates, which never import it, and its handlers of forks end children
that only start a thread.
"""

import asyncio
import contextlib
import errno
import importlib
import logging
import math
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tsctl.daemon.core.client import Clients, LimitedClient
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import DaemonError, StartError, Stopping
from tsctl.daemon.extensions.grpc.codes import Code, code_of
from tsctl.daemon.extensions.grpc.heads import CallHead, bearer_of, check_call, read_head
from tsctl.daemon.extensions.grpc.prediction import CallFailed
from tsctl.daemon.extensions.grpc.protos.limits import check_steps
from tsctl.daemon.extensions.grpc.waiting.arrivals import Arrivals
from tsctl.daemon.extensions.grpc.waiting.incoming_messages import (
    CALLS,
    OPEN_CALLS,
    SHARE,
    Activity,
    Incoming,
    Requests,
    TooManyCalls,
    plain,
)
from tsctl.daemon.extensions.grpc.waiting.ordered_answers import StepTurns
from tsctl.daemon.extensions.grpc.waiting.writing import Writing
from tsctl.daemon.extensions.tensors.triton_refusals import CALLS as UNSERVED_CALLS
from tsctl.daemon.extensions.tensors.triton_refusals import unserved
from tsctl.daemon.http.forwarded_for import TrustedProxies
from tsctl.daemon.http.messages import Request, new_request_id

INSTALL = "install it with `pip install 'tsctl[grpc]'`"
Answered = Callable[[Request, int, float], None]
NOTICED_WITHIN = 0.25  # seconds, of the loop's end while calls run; while none does, it is noticed at once
LONGEST_PAUSE = 1.0  # seconds: whoever ends the server on purpose must not gain a long time by it
_REFUSING = 0.5  # seconds: less than the time for which clients try again
_LOOK_EVERY = 0.005  # seconds
# Looks without a call after which none is on its way that was sent before: looks, not seconds, because a busy machine
# delays both. A second attempt of a client comes after 0.1 s or so.
_QUIET = 10
_LARGE = 2**20  # bytes of a message; grpc copies it twice in one callback: 0.2 ms, or 1.2 ms in memory that is fresh
_LONGEST_MESSAGE = 2000  # characters, which may quote a long name; clients take 8 KiB of trailers
_THEIR_LOG = "grpc._cython.cygrpc"
# For this process alone, so os.environ, where workers' variables come from, has it only while grpc is imported, whose
# Python reads it then; grpc's core reads the environment of C, when it is first used.
_FORK_SUPPORT = "GRPC_ENABLE_FORK_SUPPORT"
_SILENT_FOR = 60.0  # seconds between two lines about text that is not UTF-8
_SHOWN = 100  # bytes of it
_log = logging.getLogger("tsctl.daemon.grpc")


def load_grpc() -> Any:
    """Import and return grpc, with grpc.aio.

    Raises:
        StartError: the extra is not installed.
    """
    logging.getLogger(_THEIR_LOG).addFilter(_NOT_UTF8)  # once, however often
    chosen = os.environ.get(_FORK_SUPPORT)
    os.environ[_FORK_SUPPORT] = "0"
    try:
        importlib.import_module("google.protobuf")
        importlib.import_module("grpc.aio")
        return importlib.import_module("grpc")
    except ImportError:
        raise StartError("gRPC is asked for, and Python's packages for it are not installed", INSTALL) from None
    finally:
        if chosen is None:
            del os.environ[_FORK_SUPPORT]
        else:
            os.environ[_FORK_SUPPORT] = chosen
        os.putenv(_FORK_SUPPORT, "0")


class NotUtf8(logging.Filter):
    """Stops the traceback that grpc logs for text of a client that is not UTF-8: metadata, which it reads as Latin-1.

    A line in the daemon's log, at most one a minute, has the first bytes.

    Args:
        now: seconds on any monotonic clock.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self._now = now
        self._silent_until = -math.inf

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info is None or not isinstance(record.exc_info[1], UnicodeDecodeError):
            return True
        now = self._now()
        if now >= self._silent_until:
            self._silent_until = now + _SILENT_FOR
            _log.warning("a gRPC client sent text that is not UTF-8: %r", record.exc_info[1].object[:_SHOWN])
        return False


_NOT_UTF8 = NotUtf8(time.monotonic)


@dataclass(frozen=True, slots=True)
class Method:
    """One call of a service.

    Attributes:
        run: takes the parsed request, or the `Requests` of a stream, and the head.
        open: its calls need no token.
        token: the one that opens it, where it is another method's neighbour; empty for those of its server.
    """

    run: Callable[..., Any]
    request: Any
    client_streaming: bool
    server_streaming: bool
    open: bool = False
    token: str = ""


_UNSERVED = Method(lambda request, head: None, None, client_streaming=False, server_streaming=False)


def unserved_call(name: str) -> DaemonError | None:
    """Return the error for a call of Triton's that is not served, by its full name; None for any other."""
    service, _, call = name.rpartition("/")
    return unserved(UNSERVED_CALLS.get(call, "")) if service.endswith(".GRPCInferenceService") else None


def methods_of(service: Any, *, open: bool = False, token: str = "") -> dict[str, Method]:  # noqa: A002
    """Return the methods of a service: full name → method; `open` and `token` as in `Method`."""
    from tsctl.daemon.extensions.grpc.protos import messages  # here, because protobuf is an optional dependency

    found = {}
    for each in messages.service(service.name).methods:
        own = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in each.name).lstrip("_")
        kind = messages.request_class(each.input_type.full_name)
        run = getattr(service, own)
        found[f"/{service.name}/{each.name}"] = Method(
            run, kind, each.client_streaming, each.server_streaming, open, token
        )
    return found


class Calls:
    """Finds the method of each call, of which `running` are under way; what grpc calls a generic handler.

    Args:
        incoming: reads the messages.
        tokens: those that are accepted; without any, and without clients, there is no check.
        clients: those with keys; None for none.
        answered: called when a call has ended, with the HTTP request that it is like, the status and the seconds.
        most: calls at once; those that need no token may be `OPEN_CALLS` more, so that probes are answered.
        turns: in which the fields of long messages are counted; the services' own, so that they take turns together.
        proxies: those whose metadata `x-forwarded-for` names the client; None for none.
    """

    def __init__(
        self,
        grpc: Any,
        methods: Mapping[str, Method],
        clock: Clock,
        arrivals: Arrivals,
        writing: Writing,
        incoming: Incoming,
        tokens: Collection[str] = (),
        answered: Answered = lambda request, status, seconds: None,
        clients: Clients | None = None,
        most: int = CALLS,
        turns: StepTurns | None = None,
        proxies: TrustedProxies | None = None,
    ) -> None:
        self._grpc = grpc
        self._methods = methods
        self._clock = clock
        self._arrivals = arrivals
        self._writing = writing
        self._incoming = incoming
        self._most = most
        self._tokens = tuple(filter(None, tokens))
        self._secrets = (*self._tokens, *{each.token for each in methods.values() if each.token})
        self._answered = answered
        self._clients = clients
        self._proxies = proxies
        self._codes = {code.value[0]: code for code in grpc.StatusCode}
        self._accepted: dict[str, Any] = {}  # by name: the handlers of calls that are not refused
        self._turns = turns or StepTurns()
        self.running = self._begun = 0
        self._closing = False

    async def refuse(self, seconds: float) -> None:
        """Answer every further call with UNAVAILABLE, and wait until none is running, at most so many seconds.

        Clients then wait before they try again: a call that arrives while grpc stops its server would end CANCELLED,
        which they do not repeat.
        """
        self._closing = True
        loop = asyncio.get_running_loop()
        until, quiet = loop.time() + seconds, 0
        while quiet < _QUIET and loop.time() < until:
            before = self._begun
            await asyncio.sleep(_LOOK_EVERY)
            quiet = 0 if self.running or self._begun > before else quiet + 1

    def service(self, details: Any) -> Any:
        """Return grpc's handler of a call; None for an unknown method, which grpc answers UNIMPLEMENTED."""
        method = self._methods.get(details.method)
        if method is None:
            refused = unserved_call(details.method)
            return None if refused is None else self._handler(_UNSERVED, details.method, refused)
        if not (method.client_streaming or method.server_streaming):
            self._arrivals.head()
        if self._closing:
            return self._handler(method, details.method, Stopping("The daemon is being stopped. Call again."))
        if self.running >= self._most + (OPEN_CALLS if method.open else 0):
            return self._handler(method, details.method, TooManyCalls(self._most))
        if (method.token or self._tokens or self._clients is not None) and not method.open:
            shown = bearer_of(details.invocation_metadata)
            try:
                if method.token:
                    check_call(shown, (method.token,))
                elif self._client(shown) is None:
                    check_call(shown, self._tokens)
            except DaemonError as error:
                return self._handler(method, details.method, error)
        handler = self._accepted.get(details.method)
        if handler is None:
            handler = self._accepted[details.method] = self._handler(method, details.method, None)
        return handler

    def _client(self, shown: str) -> LimitedClient | None:
        return None if self._clients is None else self._clients.find(shown)

    def _handler(self, method: Method, name: str, refused: DaemonError | None) -> Any:
        """Return grpc's handler of a method's calls; `refused` is the answer to all of them, if there is one."""
        run = partial(self._stream if method.server_streaming else self._whole, method, name, refused)
        make = self._grpc.stream_stream_rpc_method_handler
        if not method.server_streaming:
            make = self._grpc.stream_unary_rpc_method_handler
        return make(run, request_deserializer=None, response_serializer=None)

    async def _whole(
        self, method: Method, name: str, refused: DaemonError | None, received: Any, context: Any
    ) -> bytes | None:
        call, connection = self._begin(name, context)
        arrived = False
        try:
            received = await self._receive(method, refused, connection, context)
            self._arrivals.message()
            arrived = True
            head = self._head(method, call, refused, context)
            request = await self._request(method, received)
            received = None  # a message is large, and the job has what it needs of it
            running = method.run(request, head)
            del request
            answer: bytes = (await running).SerializeToString()
            self._writing.until_written(connection, len(answer))
        except (CallFailed, DaemonError) as error:
            received = None
            await self._fail(context, error, call)
            return None
        finally:
            self.running -= 1
            if arrived:
                self._arrivals.end_call()
        self._note(call, 200)
        return answer

    async def _stream(
        self, method: Method, name: str, refused: DaemonError | None, received: Any, context: Any
    ) -> None:
        call, connection = self._begin(name, context)
        try:
            received = await self._receive(method, refused, connection, context)
            head = self._head(method, call, refused, context)
            request = await self._request(method, received)
            activity = request.activity if method.client_streaming else None
            received = None
            running = method.run(request, head)
            del request
            async with contextlib.aclosing(running) as answers:
                async for answer in answers:
                    await self._write(answer.SerializeToString(), connection, context, activity)
        except (CallFailed, DaemonError) as error:
            received = None
            await self._fail(context, error, call)
            return
        finally:
            self.running -= 1
        self._note(call, 200)

    async def _receive(self, method: Method, refused: DaemonError | None, connection: str, context: Any) -> Any:
        """Return the message of a call, or the `Requests` of a stream; what a refused call sends is not read."""
        if refused is not None:
            return b""
        if method.client_streaming:
            activity = Activity(self._clock.now, lambda: self.running >= self._most)
            return Requests(self._receive_each(activity, connection, context), activity)
        message = await self._incoming.read(connection, context.read)
        if message is self._grpc.aio.EOF:
            raise CallFailed(Code.INVALID_ARGUMENT, "The call has no message: send one.", 400)
        return message

    async def _receive_each(self, activity: Activity, connection: str, context: Any) -> AsyncIterator[bytes]:
        end = self._grpc.aio.EOF
        while (message := await self._incoming.read(connection, context.read, activity)) is not end:
            yield message

    async def _write(self, answer: bytes, peer: str, context: Any, activity: Activity | None) -> None:
        written = self._writing.begin_answer(peer, len(answer))
        if activity is not None:
            activity.begin()
        try:
            await context.write(answer)
        finally:
            if written is not None:
                written()
            if activity is not None:
                activity.end()

    def _begin(self, name: str, context: Any) -> tuple[Request, str]:
        """Return the HTTP request that a call is like, and the address and port of its connection."""
        self.running += 1
        self._begun += 1
        connection: str = context.peer().partition(":")[2]  # after `ipv4:` or `ipv6:`
        call = Request("POST", name, [], began=self._clock.now(), peer=connection)
        if self._proxies is not None and self._proxies.trust(plain(connection)):
            call.peer = self._proxies.client_of(context.invocation_metadata() or (), connection)
        return call, connection

    def _note(self, call: Request, status: int) -> None:
        call.id = call.id or new_request_id()
        self._answered(call, status, self._clock.now() - call.began)

    def _head(self, method: Method, call: Request, refused: DaemonError | None, context: Any) -> CallHead:
        if refused is not None:
            raise refused
        metadata = context.invocation_metadata() or ()
        shown = bearer_of(metadata)
        call.client = self._client(shown)
        head = read_head(
            call.target, metadata, context.time_remaining(), self._clock.now(), self._secrets, call.client, call.peer,
            call.began,
        )  # fmt: skip
        if (self._tokens or self._clients is not None) and call.client is None and not method.token:
            try:  # once more: the key may have been revoked while the message came
                check_call(shown, self._tokens)
            except DaemonError:
                if not method.open:
                    raise
                head = head.of_stranger()
        call.id = head.id
        return head

    async def _request(self, method: Method, received: Any) -> Any:
        """Return the request of a call, or the `Requests` of a stream."""
        if method.client_streaming:
            return Requests(self._parse_each(method.request, received), received.activity)
        return await self._parse(method.request, received)

    async def _parse_each(self, kind: Any, received: Requests) -> AsyncIterator[Any]:
        async for message in received:
            yield await self._parse(kind, message)

    async def _parse(self, kind: Any, received: bytes) -> Any:
        """Return the message in some bytes; a large one is read in turns with others."""
        if len(received) >= _LARGE:
            await asyncio.sleep(0)  # grpc has copied the message in this callback
        await self._turns.finish(check_steps(kind.DESCRIPTOR, received))
        try:
            return kind.FromString(received)
        except Exception as error:
            from google.protobuf.message import DecodeError  # here, because protobuf is an optional dependency

            if not isinstance(error, DecodeError | UnicodeDecodeError):
                raise
            raise CallFailed(
                Code.INVALID_ARGUMENT, f"The message is no {kind.DESCRIPTOR.full_name}: {error}", 400
            ) from None

    async def _fail(self, context: Any, error: CallFailed | DaemonError, call: Request) -> None:
        code = error.code if isinstance(error, CallFailed) else code_of(error)
        # `abort` raises what the call keeps: a cycle with this frame, which must not hold the frames of the request.
        error.__traceback__ = error.__context__ = None
        self._note(call, error.status)
        trailing = () if error.retry_after is None else (("retry-after", str(error.retry_after)),)
        await context.abort(self._codes[code], str(error)[:_LONGEST_MESSAGE], trailing)


class GrpcServer:
    """A server of gRPC calls at some addresses, which is supervised (lifecycle/supervision.py).

    A client can end the loop in which grpc accepts calls: that loop decodes the names of methods, before any code of
    ours, and an exception there shuts the server down. `ended` notices, and `begin` puts another server at the ports.
    Calls that run end as if the daemon stopped: they have their grace time.

    Args:
        most: bytes of a message.
        grace: seconds that the calls of a server that has ended may take.
        calls_at_once: of all connections; one has a part, and gRPC's clients send further ones later.
        end_watchers: ends the calls that would last as long as the server.
    """

    longest_pause = LONGEST_PAUSE

    def __init__(
        self,
        grpc: Any,
        calls: Calls,
        most: int,
        grace: float = 0.0,
        calls_at_once: int = CALLS,
        end_watchers: Callable[[], None] = lambda: None,
    ) -> None:
        options = [
            ("grpc.max_receive_message_length", most),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 1),
            ("grpc.max_allowed_incoming_connections", calls_at_once),
            ("grpc.max_concurrent_streams", max(1, calls_at_once // SHARE)),
            # Without probes of the bandwidth, the window of a message that nobody reads stays at 64 KiB.
            ("grpc.http2.bdp_probe", 0),
        ]
        self._calls = calls
        self._new = partial(grpc.aio.server, handlers=(calls,), options=options)
        self._server = self._new()
        self._addresses: list[tuple[str, int]] = []
        self._credentials: Any = None
        self._grace, self._end_watchers = grace, end_watchers
        self._begun = False
        self._former: dict[Any, asyncio.Task[None]] = {}  # servers whose loop has ended, and whose calls may run

    @property
    def name(self) -> str:
        return "gRPC " + " ".join(_text(host, port) for host, port in self._addresses)

    def bind(self, addresses: Sequence[tuple[str, int]], credentials: Any = None, *, alone: bool = True) -> list[int]:
        """Bind the addresses, and return the port of each; calls wait until `begin`.

        Args:
            credentials: grpc's, of a TLS certificate; None for plain text.
            alone: no other daemon may listen there; False while replacing one that does.

        Raises:
            StartError: an address cannot be used.
        """
        ports = []
        for host, port in addresses:
            text = _text(host, port)
            if alone and port:
                check_free(host, port)
            try:
                if credentials is None:
                    ports.append(self._server.add_insecure_port(text))
                else:
                    ports.append(self._server.add_secure_port(text, credentials))
            except RuntimeError:
                raise StartError(f"cannot listen for gRPC on `{text}`", "choose another `--grpc-address`") from None
        self._addresses = [(host, port) for (host, _), port in zip(addresses, ports, strict=True)]
        self._credentials = credentials
        return ports

    async def begin(self) -> None:
        """Answer calls; after an end by another server at the same ports.

        Raises:
            StartError: a port cannot be bound any more.
        """
        if not self._begun:
            await self._server.start()
            self._begun = True
            return
        self._give_up(self._server)
        self._server = self._new()
        self.bind(self._addresses, self._credentials, alone=False)  # another daemon may be about to take over
        await self._server.start()

    async def ended(self) -> str:
        """Wait until the loop that accepts calls has ended although nothing has closed the server; raise the reason."""
        while await self._server.wait_for_termination(NOTICED_WITHIN):  # raises what has ended the loop
            pass
        return "gRPC has stopped"

    @property
    def urls(self) -> Sequence[str]:
        scheme = "grpc" if self._credentials is None else "grpcs"
        return [f"{scheme}://{_text(host, port)}" for host, port in self._addresses]

    async def close(self, grace: float) -> None:
        """Accept no call, and wait for those that run, at most `grace` seconds; then cancel them."""
        self._end_watchers()
        await self._calls.refuse(grace if self._former else min(grace, _REFUSING))
        await self._server.stop(grace)
        await asyncio.gather(*[_stop(server, None) for server in self._former])

    def _give_up(self, server: Any) -> None:
        """Let the calls of a server that has ended go on for their grace time, then free the server."""
        task = self._former[server] = asyncio.get_running_loop().create_task(_stop(server, self._grace))
        task.add_done_callback(lambda task: self._former.pop(server, None))


async def _stop(server: Any, grace: float | None) -> None:
    with contextlib.suppress(Exception):  # what has ended it, once more
        await server.start()  # one that was bound and not begun frees its ports only so
    with contextlib.suppress(Exception):
        await server.stop(grace)


def _text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_free(host: str, port: int) -> None:
    """Raise StartError where another process listens: gRPC itself would share the port with it."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
                probe.listen(1)
    except OSError as error:
        hint = "stop the other process, or choose another `--grpc-address`"
        why = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror
        raise StartError(f"cannot listen for gRPC on `{host}:{port}`: {why}", hint) from None
