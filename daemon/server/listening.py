"""The listeners of a daemon at their sockets: the control socket, and each address of HTTP."""

import os
import ssl
from dataclasses import replace
from functools import partial

from tsctl.daemon.api.guards import cors_headers, guard, with_preflight
from tsctl.daemon.api.inference.unpack import Unpacking
from tsctl.daemon.config.endpoints import Endpoint, address_of
from tsctl.daemon.extension import Kernel
from tsctl.daemon.http.bounds.rejection import connections_within
from tsctl.daemon.http.forwarded_for import TrustedProxies
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.listener import Listener
from tsctl.daemon.http.router import Hold, Router
from tsctl.daemon.lifecycle.instance import Instance
from tsctl.daemon.lifecycle.sockets import SupervisedListener
from tsctl.daemon.server.routes import Tables

_METRICS_BODY = 64 * 1024  # bytes: requests for metrics need no body


def listeners_of(
    place: Instance,
    tables: Tables,
    kernel: Kernel,
    hold: Hold,
    files: int,
    tls: ssl.SSLContext | None,
) -> list[SupervisedListener]:
    """Make the listeners, the first one the control socket's; none listens yet.

    Args:
        hold: takes requests of models that are about to be registered.
        files: descriptors that the process may have open.
        tls: of addresses with TLS.
    """
    config, clock, answered, bounds = kernel.config, kernel.clock, kernel.observation.requests.note, kernel.bounds
    limits = HttpLimits(config.max_request_size, config.header_timeout, config.body_timeout, config.keep_alive)
    allowed = {0, os.getuid()}
    unpacking = partial(Unpacking, kernel.turns, bounds.receiving, bounds.take)
    local = Router(tables.control, hold, unpacking(limits.max_body))
    listener = Listener(local, limits, clock, answered, allowed.__contains__, bounds.arena)
    found = [SupervisedListener(f"control socket {config.socket}", listener, place.control, control=True)]
    proxies = TrustedProxies(config.trusted_proxies) if config.trusted_proxies else None
    limits, sending = replace(limits, connections=connections_within(files), proxies=proxies), bounds.send_budget()
    for endpoint, listening in place.bound:
        guarded = guard(endpoint, listening, config, kernel.tokens, kernel.tokens.clients, clock.now)
        size = replace(_limits_of(endpoint, limits), pages=guarded.pages)
        cors = cors_headers(config) if endpoint.inference and not endpoint.management else ()
        router = guarded.router(tables.clients, tables.managers, tables.metrics, hold, unpacking(size.max_body))
        listener = Listener(
            with_preflight(router) if cors else router, size, clock, answered, storage=bounds.arena,
            admit=guarded.admit if guarded.asks else None, receiving=bounds.receiving, sending=sending,
            full=partial(kernel.observation.events.add, "limit"), headers=cors,
        )  # fmt: skip
        name = f"{'HTTPS' if endpoint.tls else 'HTTP'} {address_of(listening, '').removeprefix('://')}"
        found.append(SupervisedListener(name, listener, listening, tls if endpoint.tls else None))
    return found


def _limits_of(endpoint: Endpoint, limits: HttpLimits) -> HttpLimits:
    return limits if endpoint.inference or endpoint.management else replace(limits, max_body=_METRICS_BODY)
