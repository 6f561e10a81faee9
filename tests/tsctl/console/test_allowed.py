"""The page's requests that reach the daemon, and all that do not."""

from tests.kit.said import said_in
from tsctl.console.allowed import CHANGEABLE, allowed


@said_in("asked.txt")
def test_what_the_page_may_ask(given: str) -> str:
    method, target = given.split(" ", 1)
    asked = allowed(method, target)
    return f"{asked.method} {asked.target}" if asked else "no"


def test_no_setting_that_the_page_can_change_starts_another_program_or_reads_a_file() -> None:
    assert {"batch_size", "max_batch_delay"} < CHANGEABLE
    assert CHANGEABLE.isdisjoint({"", "url", "handler", "runtime", "min_worker", "install_requirements"})
