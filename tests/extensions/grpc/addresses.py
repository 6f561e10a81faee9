"""The addresses of gRPC for clients of others (tests/e2e/test_clients.py)."""

from tests.e2e.served import Served, free_address

TOKEN = "secret"


def arguments_of(idle: Served) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the options of a daemon that serves predictions and management, and the arguments of a client's program:
    the two addresses, and the token of management."""
    calls, management, token = free_address(), free_address(), idle.folder / "token"
    token.touch(0o600)
    token.write_text(TOKEN)
    options = ("--grpc-address", calls, "--grpc-management-address", management, "--token-file", str(token))
    return options, (calls, management, TOKEN)
