"""The environment of a rank: the variables that `torchrun` sets, for one machine."""

from collections.abc import Mapping

ADDRESS = "127.0.0.1"
# The ranks are processes of one machine: nothing of theirs listens on a network.
_INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
_LOOPBACK = "lo"


def rank_environment(environment: Mapping[str, str], rank: int, count: int, port: int, run: str) -> dict[str, str]:
    """Return the environment of one rank.

    The variables are those of torchrun (PyTorch's documentation, "torchrun", Environment Variables), as it sets them
    where the rendezvous runs outside the ranks.

    Args:
        environment: of the worker.
        port: of the rendezvous store, on this machine.
        run: a name for the group.
    """
    number, size = str(rank), str(count)
    return dict(environment) | {
        "RANK": number, "LOCAL_RANK": number, "ROLE_RANK": number, "GROUP_RANK": "0", "ROLE_NAME": "default",
        "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "ROLE_WORLD_SIZE": size, "GROUP_WORLD_SIZE": "1",
        "MASTER_ADDR": ADDRESS, "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": run, "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    } | {name: environment.get(name, _LOOPBACK) for name in _INTERFACES}  # fmt: skip
