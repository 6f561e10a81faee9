"""How a client ends a server of gRPC, for tests/e2e/test_alerts.py."""

from collections.abc import Callable
from functools import partial

from tests.e2e.served import Served, free_address
from tests.extensions.grpc.crowds import end_loop


def ender(idle: Served) -> Callable[[], None]:
    """Return a function that ends the server of gRPC of a daemon that is started next."""
    idle.environment["TSCTL_GRPC_ADDRESS"] = address = free_address()
    return partial(end_loop, address)
