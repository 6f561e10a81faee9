"""The routes of the inference address: predictions and health."""

from daemon.api.forms import parse_body
from daemon.errors import MethodNotAllowed, ResourceNotFound
from daemon.http.exchange import Exchange
from daemon.http.messages import reply_response, status_response
from daemon.http.router import Route
from daemon.job import Job, Phase, Reply
from daemon.models.model import ModelState
from daemon.models.registry import Registry


def inference_routes(registry: Registry) -> dict[str, Route]:
    """Make the routes: first path segment → function."""

    def predictions(exchange: Exchange, path: list[str]) -> None:
        """`/predictions/MODEL[/VERSION[/…]]`, any method: run the model; what follows is `url_path`."""
        if not path:
            raise ResourceNotFound
        if exchange.request.method == "OPTIONS":
            raise MethodNotAllowed
        _submit(registry, exchange, path[0], path[1] if len(path) > 1 else None, "/".join(path[2:]))

    def ping(exchange: Exchange, path: list[str]) -> None:
        """`/ping`: whether every default version has the workers it should have."""
        if path:
            raise ResourceNotFound
        healthy = all(model.healthy for model in registry.defaults())
        exchange.respond(status_response("Healthy" if healthy else "Unhealthy", 200 if healthy else 500))

    def ready(exchange: Exchange, path: list[str]) -> None:
        """`/ready[/MODEL[/VERSION]]`: whether it, or every default version, has a worker that is ready."""
        if len(path) > 2:
            raise ResourceNotFound
        asked = [registry.find(*path)] if path else registry.defaults()
        is_ready = all(model.state is ModelState.READY for model in asked)
        exchange.respond(status_response("Ready" if is_ready else "Not ready", 200 if is_ready else 503))

    def live(exchange: Exchange, path: list[str]) -> None:
        """`/live`: that the daemon turns."""
        if path:
            raise ResourceNotFound
        exchange.respond(status_response("Live"))

    def root(exchange: Exchange, path: list[str]) -> None:  # noqa: ARG001 - one signature for all
        raise MethodNotAllowed

    return {"predictions": predictions, "ping": ping, "ready": ready, "live": live, "": root}


def _submit(registry: Registry, exchange: Exchange, name: str, version: str | None, url_path: str) -> None:
    request = exchange.request
    model = registry.find(name, version)
    params = parse_body(request.header("content-type"), request.body)
    headers = [*request.headers, ("url_path", url_path), ("explain", "False")]

    def deliver(reply: Reply) -> None:
        exchange.respond(reply_response(reply))

    def leave(gone: bool) -> bool:
        if gone or job.phase is Phase.QUEUED:
            model.abandon(job)
            return False
        return True

    job = Job(request.id, params, headers, request.received, deliver)
    model.submit(job)
    request.body = b""  # the job has it now
    exchange.on_leave = leave
