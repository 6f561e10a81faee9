"""The routes of the inference address: predictions and health."""

from daemon.api.forms import parse_body
from daemon.errors import MethodNotAllowed, ResourceNotFound
from daemon.http.exchange import Exchange
from daemon.http.messages import reply_response, status_response
from daemon.http.router import Route
from daemon.job import Job, Phase, Reply
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

    def root(exchange: Exchange, path: list[str]) -> None:  # noqa: ARG001 - one signature for all
        raise MethodNotAllowed

    return {"predictions": predictions, "ping": ping, "": root}


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

    job = Job(request.id, params, headers, request.received, deliver, unnamed=version is None)
    model.submit(job)
    request.body = b""  # the job has it now
    exchange.on_leave = leave
