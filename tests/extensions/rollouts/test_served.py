"""A rollout of a real daemon goes on with what its step has counted, after an upgrade and after a stop."""

from tests.e2e.served import Served, eventually, running


def test_a_rollouts_step_goes_on_counting_after_an_upgrade_and_after_a_stop(idle: Served) -> None:
    idle.start()
    for version in ("1.0", "2.0"):
        idle.tsctl("register", idle.pack_told(version, version=version))
    idle.tsctl("rollout", "m/2.0", "--steps", "50", "--every", "1h", "--abort-if", "errors>20%")

    def counted(more: int) -> int:
        """Return how many requests the step has counted after some more."""
        for _ in range(more):
            assert idle.ask("/predictions/m/2.0", b"x").status == 200
        (finding,) = idle.command("GET", "/models/m/rollout").json["rollout"]["findings"]
        return int(finding["requests"])

    assert counted(7) == 7
    before = idle.pid
    idle.tsctl("upgrade")
    eventually(
        lambda: not running(before), "the daemon before has ended, which may answer the next requests until then"
    )
    assert counted(0) == 7
    assert counted(4) == 11
    idle.tsctl("stop")
    idle.start()

    assert counted(0) == 11
    assert counted(2) == 13
