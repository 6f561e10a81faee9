"""`python -P -m tsctl.daemon.tools.tune`: see this folder's `__init__` for its input and output."""

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Any

import msgspec
import uvloop

from tsctl.daemon.config.config import resolve
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.core.clock import LoopClock
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.tools.telling import tell
from tsctl.daemon.tools.tune.serving import ModelServer, NotServed, TuneOrder
from tsctl.daemon.workers.local_engine import LocalEngine

LONGEST = 1 << 24  # bytes of a line: a manifest and a model's settings are in it


async def converse() -> None:
    """Answer each line of stdin until it ends."""
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=LONGEST)
    # Not a thread: blocked in a read, one would hold up the end after Ctrl-C.
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    order = msgspec.json.decode(await lines.readline(), type=TuneOrder)
    clock, config = LoopClock(loop), resolve(order.settings, {})
    engine = LocalEngine(loop, clock, model_environment(os.environ, config), metrics=config.model_metrics)
    server = ModelServer(engine, clock, config, order)
    tell("started", cores=server.cores)
    try:
        while line := await lines.readline():
            await _answer(server, msgspec.json.decode(line))
    finally:
        await server.close()
        engine.close()


async def _answer(server: ModelServer, changes: Mapping[str, Any] | None) -> None:
    if changes is None:
        tell("used", cpu=server.cpu)
        return
    try:
        port = await server.serve(changes)
    except NotServed as error:
        tell("failed", message=str(error), details=error.details)
    except DaemonError as error:
        tell("failed", message=str(error), details="")
    else:
        tell("serving", port=port, threads=server.threads)


def main() -> int:
    try:
        uvloop.run(converse())
    except (KeyboardInterrupt, BrokenPipeError):
        return 1
    except DaemonError as error:
        tell("failed", message=str(error), details="")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
