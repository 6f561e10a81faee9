"""The load over gRPC: the closed loop and the open loop, each client with a channel of its own."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tsctl.loadgen.connection import FirstResponse, NoResponse
from tsctl.loadgen.order import PreparedOrder
from tsctl.loadgen.tally import Tally

GOODBYE = 1.0  # seconds that calls still have after the run is broken off
AGAIN = 0.1  # seconds until a client without a connection calls again: its calls fail at once


class CallLoop:
    """One run of calls.

    Attributes:
        tally: errors are counted by their gRPC code.
    """

    def __init__(self, sending: PreparedOrder) -> None:
        import grpc.aio  # here, because it is an optional dependency

        self._grpc: Any = grpc
        self.tally = Tally()
        self.began = 0.0
        self._order = order = sending.order
        self._body = sending.request
        self._left = order.requests
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        target = f"[{order.host}]:{order.port}" if ":" in order.host else f"{order.host}:{order.port}"
        count = order.connections if order.rate is None else min(order.connections, 8)
        self._channels = [self._channel(target, options) for _ in range(count)]
        self._metadata = [(name.lower(), value) for name, value in order.headers if name.lower() == "authorization"]
        self._calls: list[Callable[..., Awaitable[bytes]]] = [
            channel.unary_unary(order.target) for channel in self._channels
        ]

    def _channel(self, target: str, options: list[tuple[str, Any]]) -> Any:
        if not self._order.certificate:
            return self._grpc.aio.insecure_channel(target, options)
        with open(self._order.certificate, "rb") as file:
            credentials = self._grpc.ssl_channel_credentials(file.read())
        return self._grpc.aio.secure_channel(target, credentials, options)

    @property
    def seconds(self) -> float:
        return (self.tally.closed_at or time.monotonic()) - self.began

    async def ask_once(self) -> FirstResponse:
        """Make one call before the run.

        Raises:
            NoResponse: the call failed; the message has its code and details.
        """
        began = time.monotonic()
        try:
            answer = await self._calls[0](self._body, timeout=self._order.timeout, metadata=self._metadata)
        except self._grpc.aio.AioRpcError as error:
            raise NoResponse(f"the first call failed: {error.code().name}: {error.details()}") from None
        return FirstResponse(200, answer, time.monotonic() - began)

    async def run(self, broken_off: asyncio.Event) -> None:
        """Make calls until the order's end, or until `broken_off`; wait for the last answers."""
        self.began = time.monotonic()
        if self._order.rate is None:
            clients = list(map(self._client, self._channels, self._calls))
        else:
            clients = [self._arrivals()]
        running = asyncio.gather(*clients)
        cut = asyncio.create_task(broken_off.wait())
        await asyncio.wait((running, cut), return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            self._close()
            await asyncio.wait((running,), timeout=GOODBYE)
        self._close()
        running.cancel()
        cut.cancel()
        await asyncio.gather(*[channel.close() for channel in self._channels])

    def _take(self) -> bool:
        """Return whether one more call may start, and count it as started."""
        late = self._order.seconds is not None and time.monotonic() - self.began >= self._order.seconds
        if self.tally.closed_at or late or self._left == 0:
            self._close()
            return False
        if self._left is not None:
            self._left -= 1
        return True

    def _close(self) -> None:
        if not self.tally.closed_at:
            self.tally.close(time.monotonic())

    async def _client(self, channel: Any, call: Callable[..., Awaitable[bytes]]) -> None:
        while self._take():
            await self._call(call, time.monotonic())
            if channel.get_state() is not self._grpc.ChannelConnectivity.READY:
                await asyncio.sleep(AGAIN)

    async def _arrivals(self) -> None:
        """Start calls at their scheduled times, whether earlier ones have been answered or not."""
        assert self._order.rate is not None
        draw, gap = random.Random(), 1.0 / self._order.rate
        due, running, number = self.began, set[asyncio.Task[None]](), 0
        while self._take():
            while (early := due - time.monotonic()) > 0:  # noqa: ASYNC110 - uvloop rounds timers to ms, also down
                await asyncio.sleep(early)
            number += 1
            task = asyncio.create_task(self._call(self._calls[number % len(self._calls)], due))
            running.add(task)
            task.add_done_callback(running.discard)
            due += draw.expovariate(1.0) * gap if self._order.spacing == "poisson" else gap
        await asyncio.gather(*running)

    async def _call(self, call: Callable[..., Awaitable[bytes]], intended: float) -> None:
        began = time.monotonic()
        try:
            answer = await call(self._body, timeout=self._order.timeout, metadata=self._metadata)
        except self._grpc.aio.AioRpcError as error:
            code = error.code().name
            if code == "DEADLINE_EXCEEDED" and time.monotonic() - began >= self._order.timeout:
                self.tally.failed("timeout")  # by the clock here
            else:
                self.tally.answered(code, 0, time.monotonic() - intended)
                self.tally.explain(code, (error.details() or "").encode())
        else:
            self.tally.answered("OK", len(answer), time.monotonic() - intended)
