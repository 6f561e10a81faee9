"""Children are watched until they end, or until the daemon does."""

import asyncio
import os
from typing import Any

from tests.kit.clock import FakeClock
from tsctl.daemon.workers.processes.reaper import Children


def start_child() -> int:
    return os.posix_spawn("/bin/true", ["true"], {}, setsid=True)


def start_child_with_a_child() -> int:
    return os.posix_spawn("/bin/sh", ["sh", "-c", "sleep 600 & wait"], {"PATH": "/usr/bin:/bin"}, setsid=True)


def await_change(pid: int, change: int) -> None:
    os.waitid(os.P_PID, pid, change | os.WNOWAIT)


def await_end(pid: int) -> None:
    """Wait until a child has ended, while the loop does not turn."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def reap(pid: int) -> None:
    """Reap a child as leftovers are."""
    os.waitpid(pid, 0)


async def test_the_end_of_a_child_is_told_once_with_its_code() -> None:
    children = Children(asyncio.get_running_loop(), FakeClock())
    ended = asyncio.Event()

    process = children.watch_child(start_child(), ended.set)
    await ended.wait()

    assert process.returncode == 0
    children.kill_leftovers()


async def test_a_child_that_ends_with_the_daemon_is_reaped_once() -> None:
    loop = asyncio.get_running_loop()
    failed: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: failed.append(context))
    children = Children(loop, FakeClock())
    told: list[int] = []
    pid = start_child()
    children.watch_child(pid, lambda: told.append(pid))

    await_end(pid)
    children.kill_leftovers()
    reap(pid)
    for _ in range(3):
        await asyncio.sleep(0)

    assert failed == [] and told == []


async def test_a_suspended_child_stops_with_its_children_until_it_is_resumed() -> None:
    children = Children(asyncio.get_running_loop(), FakeClock())
    pid = start_child_with_a_child()
    ended = asyncio.Event()
    process = children.watch_child(pid, ended.set)

    assert process.suspend()
    await_change(pid, os.WSTOPPED)
    process.resume()
    await_change(pid, os.WCONTINUED)
    process.suspend()
    process.kill()  # ends one that is suspended, too
    await ended.wait()

    assert not process.suspend(), "its number may be another's"
    children.kill_leftovers()
