"""No process of a worker outlives it, or the daemon, however it tries."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.served import Answer, Served, eventually, running
from tsctl.daemon.core.machine.cgroups import own_directory
from tsctl.daemon.workers.processes.leftovers import children_of

needs_cgroups = pytest.mark.skipif(
    (here := own_directory()) is None or not os.access(here / "cgroup.procs", os.W_OK),
    reason="this user may make no cgroup",
)
WAYS = ["leave_a_child", "leave_an_unseen_child", "leave_a_program", "detach"]


def do(served: Served, word: str, model: str = "misbehaves") -> Answer:
    return served.predict(model, {"do": word})


def leave(served: Served, word: str) -> tuple[int, int]:
    """Make a worker leave a process behind; return the pids of both, which run."""
    said = do(served, word).json
    assert running(said["child"])
    return said["pid"], said["child"]


def gone(*pids: int) -> None:
    eventually(lambda: not any(map(running, pids)), "the processes are gone")


# Read by each Python that starts with it on its path.
NO_CGROUPS = """
from tsctl.daemon.workers.processes.spawn import Cgroups
Cgroups.open = classmethod(lambda cls, here=None: None)
"""


@pytest.fixture(scope="module", params=[True, False], ids=["in cgroups, if there are any", "without cgroups"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A daemon for the tests that leave it as it was."""
    with Served(tmp_path_factory.mktemp("leftovers")) as served:
        if not request.param:
            (served.folder / "sitecustomize.py").write_text(NO_CGROUPS)
            served.environment["PYTHONPATH"] = str(served.folder)
        served.start()
        served.register("misbehaves", "--workers", "1")
        yield served


@pytest.fixture
def misbehaving(served: Served) -> Served:
    served.register("misbehaves", "--workers", "1")
    return served


@pytest.fixture
def own_cgroup(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cgroup for this test: a daemon that another test starts in the same one would kill the leftovers first."""
    monkeypatch.setattr(Served, "forks", False)  # the daemon is to be in it
    here = own_directory()
    assert here is not None
    folder = here / f"tests-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    (folder / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (here / "cgroup.procs").write_text(str(os.getpid()))
        eventually(lambda: removed(folder), "the cgroup of the test is removed")


def removed(folder: Path) -> bool:
    """Remove a cgroup; return whether the kernel did, which refuses while a process in it ends."""
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


@pytest.mark.parametrize("word", WAYS)
def test_what_a_worker_left_is_killed_when_it_ends(shared: Served, word: str) -> None:
    worker, left = leave(shared, word)

    os.kill(worker, signal.SIGKILL)

    gone(worker, left)
    assert do(shared, "nothing").status == 200


def test_and_when_its_model_is_unregistered(shared: Served) -> None:
    pids = {pid for word in WAYS for pid in leave(shared, word)}

    shared.tsctl("unregister", "misbehaves")

    gone(*pids)
    shared.register("misbehaves", "--workers", "1")


def test_a_helper_in_its_workers_session_stays_when_another_worker_ends(shared: Served) -> None:
    worker, helper = leave(shared, "leave_a_program")
    shared.register("misbehaves", "--workers", "1", name="other")
    other = do(shared, "nothing", "other").json["pid"]

    os.kill(other, signal.SIGKILL)

    gone(other)
    assert do(shared, "nothing", "other").status == 200
    assert running(helper) and running(worker)
    shared.tsctl("unregister", "other")


@pytest.mark.parametrize("forked", ["false", "true"], ids=["exec'd", "forked from a template"])
def test_and_when_the_daemon_stops(idle: Served, forked: str) -> None:
    idle.environment["TSCTL_TEMPLATE"] = forked
    idle.start()
    idle.register("misbehaves", "--workers", "1")
    pids = {pid for word in WAYS for pid in leave(idle, word)}

    idle.tsctl("stop")

    assert not any(map(running, pids))


@pytest.mark.thin
def test_what_a_worker_left_before_it_exited_is_killed(shared: Served) -> None:
    assert do(shared, "detach_and_exit").status == 500

    eventually(lambda: do(shared, "nothing").status == 200, "a worker answers")
    worker = do(shared, "nothing").json["pid"]
    eventually(lambda: {each.pid for each in children_of(shared.pid)} == {worker}, "only the worker is left")


def test_an_upgrade_ends_what_the_old_daemons_workers_left_and_nothing_of_the_new_one(misbehaving: Served) -> None:
    worker, left = leave(misbehaving, "detach")
    old = misbehaving.pid

    misbehaving.tsctl("upgrade")

    gone(worker, left, old)
    again = do(misbehaving, "nothing")
    assert again.status == 200 and running(misbehaving.pid) and misbehaving.pid != old
    misbehaving.tsctl("upgrade")
    assert do(misbehaving, "nothing").status == 200


@needs_cgroups
@pytest.mark.parametrize("stops", [True, False], ids=["when the daemon stops", "when its worker ends"])
def test_in_a_cgroup_nothing_is_quick_enough_to_get_away(misbehaving: Served, stops: bool) -> None:
    worker = do(misbehaving, "detach_for_ever").json["pid"]
    group = folder_of(misbehaving) / "1"
    assert int((group / "cgroup.procs").read_text().split()[0])

    if stops:
        misbehaving.tsctl("stop")
    else:
        os.kill(worker, signal.SIGKILL)

    eventually(lambda: not group.exists() or not (group / "cgroup.procs").read_text(), "nothing is left in the cgroup")


@needs_cgroups
def test_what_outlives_a_daemon_that_is_killed_ends_when_the_next_one_starts(
    own_cgroup: None, misbehaving: Served
) -> None:
    worker, left = leave(misbehaving, "detach")
    folder = folder_of(misbehaving)
    misbehaving.kill()
    gone(worker)
    assert running(left)

    misbehaving.start()

    gone(left)  # it was killed, but somebody still has to reap it
    eventually(lambda: not folder.exists(), "its cgroup is removed")


def folder_of(served: Served) -> Path:
    """The cgroups of a daemon's workers."""
    here = own_directory()
    assert here is not None
    (folder,) = here.glob(f"tsctl-*-{served.pid}-*")
    return folder
