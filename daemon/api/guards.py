"""The routes of an endpoint, each behind its check.

A request with a body is checked twice: before its body is read, so that strangers cannot make the daemon
buffer bytes, and at its route, which also checks requests without a body and hides the token.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass

from daemon.api.auth import OPEN, Check, guarded, inference_check, management_check, own_hosts
from daemon.api.inference.routes import predicts
from daemon.config.config import Config
from daemon.config.endpoints import Endpoint
from daemon.config.tokens import Tokens
from daemon.http.messages import Request
from daemon.http.router import Hold, Route, Router, join


@dataclass(frozen=True, slots=True)
class Guard:
    """The checks of one endpoint."""

    endpoint: Endpoint
    inference: Check
    management: Check
    tokens: Tokens

    @property
    def asks(self) -> bool:
        """Whether there is anything to check."""
        return self.endpoint.management or bool(self.tokens.inference)

    def admit(self, request: Request) -> None:
        """Check a request whose head has arrived, and whose body has not.

        Raises:
            Forbidden: the request is not allowed here, with any token.
            MissingToken: the request has no token, and needs one.
            WrongToken: the request's token is not accepted.
        """
        if self.endpoint.inference and (not self.endpoint.management or predicts(request.path)):
            self.inference(request)  # also for `/ping`, which ignores a body
        elif self.endpoint.management:
            self.management(request)

    def router(
        self,
        inference: Mapping[str, Route],
        management: Mapping[str, Route],
        metrics: Mapping[str, Route],
        hold: Hold | None = None,
    ) -> Router:
        """Return the endpoint's application."""
        tables: list[Mapping[str, Route]] = []
        if self.endpoint.inference:
            hide = (self.tokens.inference, self.tokens.management)
            tables.append(guarded(inference, self.inference, unguarded=OPEN, hide=hide))
        if self.endpoint.management:
            tables.append(guarded(management, self.management))
        if self.endpoint.metrics and not self.endpoint.inference:  # with predictions it is behind their check
            tables.append(metrics)
        return Router(join(*tables), hold)


def guard(endpoint: Endpoint, listening: socket.socket, config: Config, tokens: Tokens) -> Guard:
    """Return the checks of an endpoint."""
    host, port = listening.getsockname()[:2]
    # An endpoint on every address of this machine is called by the machine's name.
    own = (endpoint.host, host, *([socket.gethostname()] if host in ("0.0.0.0", "::") else []))
    names = [f"[{name}]" if ":" in name else name for name in own]
    hosts = own_hosts(names, port, config.allowed_host or (), tls=endpoint.tls)
    return Guard(
        endpoint,
        inference_check(tokens.inference, tokens.management),
        management_check(tokens.management, hosts),
        tokens,
    )
