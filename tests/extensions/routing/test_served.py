"""A route of a real daemon: clients go to the same versions after an upgrade, and after a daemon was killed."""

import pytest

from tests.e2e.served import Served


def versions_of(served: Served) -> list[str]:
    """Return the version that answers each of some clients."""
    answers = [served.ask("/predictions/m", b"x", **{"X-User": str(user)}) for user in range(24)]
    assert {answer.status for answer in answers} == {200}
    return [answer.body.decode() for answer in answers]


@pytest.mark.thin
def test_a_route_outlives_its_daemon(idle: Served) -> None:
    idle.start()
    for version in ("1.0", "2.0"):
        idle.tsctl("register", idle.pack_told(version, version=version))

    idle.tsctl("route", "m", "1.0=60", "2.0=40", "--sticky", "header:x-user")
    before = versions_of(idle)
    idle.tsctl("upgrade")
    upgraded = versions_of(idle)
    idle.kill()
    idle.start()

    assert set(before) == {"1.0", "2.0"}
    assert upgraded == before
    assert versions_of(idle) == before
    assert idle.run("unregister", "m/2.0").returncode == 1
