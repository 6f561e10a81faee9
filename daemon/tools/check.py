"""`python -m tsctl.daemon.tools.check ARCHIVE`: load an archive, or a file, in a throw-away worker, and report it.

Writes JSON objects, a line each, to stdout; the worker's output goes to stderr. Uses the same
registration, pool and dispatcher as the daemon, in a temporary state directory, and listens nowhere.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from tsctl.daemon import paths
from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.core.clock import LoopClock
from tsctl.daemon.core.errors import DaemonError, RequirementsFailed, StartError
from tsctl.daemon.core.job import Job, Param, Piece, Reply
from tsctl.daemon.core.logs import ModelLogs
from tsctl.daemon.http.messages import new_request_id
from tsctl.daemon.models.registering.spec import mode_of
from tsctl.daemon.models.registrar import Registrar, Registration
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.models.tensors import file_tensors
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.tools.telling import tell
from tsctl.daemon.workers.local_engine import LocalEngine
from tsctl.handlers.wire import Declared


def describe(model: ModelVersion, config: Config) -> dict[str, Any]:
    """Return the archive's description, and the settings of its service."""
    manifest, settings = model.source.manifest, model.settings
    document = {
        "name": model.name,
        "version": model.version,
        "handler": manifest.handler,
        "modelFile": manifest.model_file,
        "serializedFile": manifest.serialized_file,
        "batchSize": settings.batch_size,
        "maxBatchDelay": round(settings.max_delay * 1000),
        "batching": settings.policy,
        "mode": mode_of(settings),
        "workers": settings.workers,
        "responseTimeout": settings.response_timeout,
        "startupTimeout": settings.startup_timeout,
        "declared": declared_document(model.declared),
        "tensors": file_tensors(model.declared),
        "notes": list(model.notes),
    }
    for extension in EXTENSIONS:
        document |= extension.describe(model, config)
    return document


def declared_document(declared: Declared | None) -> dict[str, Any] | None:
    """Return a typed handler's declaration (tsctl.handlers.wire.Declared) as JSON; None if there is none."""
    if declared is None or declared.built_in:
        return None
    inputs = [{"name": each.name, "kind": each.kind, "annotation": each.annotation} for each in declared.inputs]
    return {"inputs": inputs, "batches": declared.batches, "output": declared.output}


async def predict(model: ModelVersion, body: bytes, content_type: str) -> Reply:
    """Run one request, and return its whole reply."""
    answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    pieces: list[bytes] = []
    headers = [("url_path", ""), ("explain", "False")]
    param = Param("body", content_type, body)

    def deliver(reply: Reply) -> None:
        if not answer.done():  # else Ctrl-C has cancelled it
            answer.set_result(reply)

    def stream(piece: Reply) -> None:
        pieces.append(piece.body)
        if isinstance(piece, Piece) and piece.flow is not None:
            piece.flow.wanted = True
            piece.flow.drained()

    job = Job(new_request_id(), [param], headers, time.monotonic(), deliver, stream)
    model.submit(job)
    reply = await answer
    return Reply(reply.status, b"".join(pieces) + reply.body, reply.phrase, reply.headers, reply.error)


async def check(
    asked: Registration, sample: bytes | None, content_type: str, state_dir: Path, settings: Mapping[str, str | None]
) -> bool:
    """Load what a registration names, run the sample if there is one, and return whether all went well.

    Args:
        settings: further ones of the daemon.
    """
    try:
        config = resolve({**settings, "state_dir": str(state_dir), "socket": str(state_dir / "none"), "grace": "5"}, {})
    except StartError as error:
        tell("failed", status=400, message=str(error))
        return False
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop)
    logs = ModelLogs(partial(paths.model_log, state_dir), foreground=True, plain=True)
    state_dir.joinpath("logs").mkdir()
    engine = LocalEngine(loop, clock, alone=True, metrics=config.model_metrics)
    registrar = Registrar(config, Registry(), engine, clock, logs)
    registrar.clean()
    try:
        began = time.perf_counter()
        model = await registrar.register(asked, lambda stage, done, total: tell(stage, done=done, total=total))
        tell("loaded", seconds=time.perf_counter() - began, **describe(model, config))
        if sample is None:
            return True
        began = time.perf_counter()
        reply = await predict(model, sample, content_type)
        text = reply.body.decode("utf-8", "replace")
        tell("answered", seconds=time.perf_counter() - began, status=reply.status, error=reply.error, body=text)
        return reply.status < 400
    except asyncio.CancelledError:  # Ctrl-C: a worker within a request would take seconds to leave
        await registrar.stop_now()
        raise
    except DaemonError as error:
        if isinstance(error, RequirementsFailed):  # no worker has printed what pip said
            sys.stderr.write(str(error).partition("\n\n")[2] + "\n")
        tell("failed", status=error.status, message=str(error))
        return False
    finally:
        await registrar.stop(grace=0.0)
        engine.close()
        engine.kill_leftovers()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tsctl.daemon.tools.check", description="Try an archive without a daemon."
    )
    parser.add_argument("archive", help="An absolute path; of a file to serve in place perhaps with `:function`.")
    parser.add_argument("--model-name", default="")
    parser.add_argument("--handler", default="")
    parser.add_argument("--fallback-batch-size", type=int)
    parser.add_argument("--input", type=Path, help="A request body to run.")
    parser.add_argument("--content-type", default="")
    parser.add_argument("--metrics-config", help="TorchServe's metrics.yaml.")
    parser.add_argument("--install-requirements", help="`true` to install the archive's requirements.")
    given = parser.parse_args(arguments)
    settings = {"metrics_config": given.metrics_config, "install_requirements": given.install_requirements}
    sample = given.input.read_bytes() if given.input is not None else None
    asked = Registration(
        url=given.archive,
        model_name=given.model_name or None,
        handler=given.handler or None,
        overrides=Overrides(fallback_workers=1, fallback_batch_size=given.fallback_batch_size),
        local_paths=True,
    )
    # The lines on stdout tell all of it: without a handler, logging would print the events' warnings to stderr, too.
    logging.getLogger("tsctl.daemon.events").addHandler(logging.NullHandler())
    with tempfile.TemporaryDirectory(prefix="tsctl-check-") as state_dir:
        try:
            good = uvloop.run(check(asked, sample, given.content_type, Path(state_dir), settings))
        except KeyboardInterrupt:
            return 1
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
