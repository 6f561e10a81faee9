"""A worker takes no more of the machine than its model may: it is replaced, and everybody is told why."""

import os

import pytest

from tests.e2e.served import Served, eventually

WHY = "it was over its memory limit of 150 MiB: it had "
BINARY = {"content_type": "application/octet-stream"}


@pytest.mark.thin
def test_a_worker_over_its_memory_limit_is_replaced_and_the_client_told_why(served: Served) -> None:
    served.register("grows", "--max-memory", "150MiB")
    before = served.pids("grows")

    answer = served.ask("/predictions/grows", b"300", **BINARY)

    assert answer.status == 507
    assert f"The worker died while it ran this request: killed: {WHY}" in answer.json["message"]
    assert served.describe("grows")["tsctl"]["lastExit"].startswith(f"killed: {WHY}")
    eventually(lambda: served.ask("/predictions/grows", b"", **BINARY).status == 200, "another worker answers")
    assert served.pids("grows") != before


def test_a_model_over_its_limit_at_its_load_is_not_registered_and_workers_keep_to_their_processors(
    served: Served,
) -> None:
    refused = served.run("register", served.pack("grows", config="atLoad: 300\n"), "--max-memory", "150 MiB")

    assert refused.returncode == 1
    assert f"the worker was killed: {WHY}" in refused.stderr
    assert served.status["models"] == []

    first = min(os.sched_getaffinity(0))
    served.register("grows", config=f"cpus: [{first}]\nmaxMemory: 1GiB\n")

    answer = served.ask("/predictions/grows", b"", **BINARY)

    assert answer.json == {"cpus": [first], "threads": "1"}
    settings = {each["name"]: each["value"] for each in served.describe("grows")["tsctl"]["settings"]}
    assert (settings["cpus"], settings["maxMemory"]) == (str(first), "1 GiB")
    refused = served.run("register", served.pack("mirror"), "--cpus", "4000-4001")
    assert "cpus is 4000-4001, but the daemon may only use " in refused.stderr
    refused = served.run("register", "mirror.mar", "--max-memory", "much")
    assert "'--max-memory': `much`; expected a size, such as 4GiB" in refused.stderr
