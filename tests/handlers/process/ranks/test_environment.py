"""The environment of a rank."""

from tsctl.handlers.process.ranks.leader import rank_environment


def test_a_rank_has_the_variables_of_torchrun() -> None:
    environment = rank_environment({"PATH": "/bin"}, 1, 4, 29500, "m-7")

    assert environment["PATH"] == "/bin"
    assert {environment[name] for name in ("RANK", "LOCAL_RANK", "ROLE_RANK")} == {"1"}
    assert {environment[name] for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE")} == {"4"}
    assert (environment["GROUP_RANK"], environment["GROUP_WORLD_SIZE"]) == ("0", "1")
    assert (environment["MASTER_ADDR"], environment["MASTER_PORT"]) == ("127.0.0.1", "29500")
    assert environment["TORCHELASTIC_RUN_ID"] == "m-7"


def test_ranks_listen_on_the_loopback_interface_unless_the_operator_names_another() -> None:
    environment = rank_environment({"NCCL_SOCKET_IFNAME": "ib0"}, 0, 2, 1, "m")

    assert (environment["GLOO_SOCKET_IFNAME"], environment["TP_SOCKET_IFNAME"]) == ("lo", "lo")
    assert environment["NCCL_SOCKET_IFNAME"] == "ib0"
