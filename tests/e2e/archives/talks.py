"""A coroutine: answers after so many seconds; with a second number it sends so many pieces before."""

import asyncio
from typing import Any

from tsctl.handlers.sdk.streaming import send_intermediate_predict_response


class Talks:
    def initialize(self, context: Any) -> None:
        self.active = self.cancelled = 0

    async def handle(self, data: list[Any], context: Any) -> list[str]:
        body = data[0]["body"]
        if body == "counts":
            return [f"{self.active} {self.cancelled}"]
        seconds, *pieces = body.split()
        self.active += 1
        try:
            for number in range(int(pieces[0]) if pieces else 0):
                send_intermediate_predict_response([f"{number} "], context.request_ids, "", 200, context)
                await asyncio.sleep(float(seconds))
            await asyncio.sleep(float(seconds))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.active -= 1
        return [f"after {seconds}"]
