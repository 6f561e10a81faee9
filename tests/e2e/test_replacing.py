"""A version is replaced while clients go on asking, and none of them fails."""

import json
import time
from urllib.parse import quote

import pytest

from tests.e2e.load import Load
from tests.e2e.served import Answer, Served, eventually


def replace(served: Served, archive: str, **parameters: str) -> Answer:
    query = "".join(f"&{name}={quote(value)}" for name, value in parameters.items())
    return served.command("POST", f"/models?url={archive}&replace=true{query}")


@pytest.mark.thin
def test_under_load_no_request_fails_and_none_reaches_the_old_one_after_the_acknowledgement(served: Served) -> None:
    served.tsctl("register", served.pack_told("v0"), "--workers", "2", "--batch-size", "4", "--max-delay", "1")
    acknowledged = {}

    with Load(served, "/predictions/m", clients=6) as load:
        for number in (1, 2, 3):
            answer = replace(served, served.pack_told(f"v{number}"), batch_size="4")
            acknowledged[f"v{number}"] = now = time.monotonic()
            assert answer.json["status"] == 'Model "m" Version: 1.0 replaced with 2 initial workers'
            eventually(lambda now=now: load.after(now), "every client is answered")  # type: ignore[misc]
        failed = replace(served, served.pack_told("broken"))
        assert failed.status == 500 and "ValueError: this one cannot be loaded" in failed.json["message"]

    seen = list(load)
    assert load.failures == []
    assert {each.told for each in seen} == {"v0", "v1", "v2", "v3"}
    for number in (1, 2, 3):
        late = {each.told for each in seen if each.began > acknowledged[f"v{number}"]}
        assert late <= {f"v{later}" for later in range(number, 4)}
    models = served.folder / "state" / "models"
    eventually(lambda: len(list(models.iterdir())) == 2, "only the files of v3, and of v2 for a rollback, are kept")


def test_a_kill_while_the_new_one_loads_brings_the_old_one_back_and_later_the_new_one(idle: Served) -> None:
    go = idle.folder / "go"
    idle.environment["TEST_GO"] = str(go)
    idle.start()
    idle.tsctl("register", idle.pack_told("old"))
    assert replace(idle, idle.pack_told("late"), synchronous="false").status == 202

    def kill_and_start() -> None:
        idle.kill()
        idle.start()
        eventually(lambda: idle.ask("/ready", method="GET").status == 200, "it is ready")

    kill_and_start()
    assert idle.ask("/predictions/m", b"x").body == b"old"
    assert len(list((idle.folder / "state" / "models").iterdir())) == 1
    go.touch()
    idle.tsctl("register", "late.mar", "--replace")
    kill_and_start()

    assert idle.ask("/predictions/m", b"x").body == b"late"
    assert json.loads(idle.tsctl("ls", "--json"))[0]["url"] == "late.mar"


def test_under_load_no_request_fails_while_its_workers_are_started_anew(served: Served) -> None:
    served.tsctl("register", served.pack_told("same"), "--workers", "2", "--batch-size", "4", "--max-delay", "1")
    before = served.pids("m")

    with Load(served, "/predictions/m", clients=6) as load:
        said = served.tsctl("restart", "m")
        now = time.monotonic()
        eventually(lambda: load.after(now), "every client is answered")

    assert said == 'Model "m" Version: 1.0 restarted, 2 of 2 workers ready\n'
    assert load.failures == [] and {each.told for each in load} == {"same"}
    assert len({*before, *served.pids("m")}) == 4
