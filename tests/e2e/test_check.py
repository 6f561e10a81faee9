"""`tsctl check`: an archive is tried without a daemon."""

import json
from pathlib import Path

import pytest

from tests.e2e.served import Served


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    file = tmp_path / "request.json"
    file.write_text('{"do": "nothing"}')
    return file


@pytest.mark.thin
def test_it_says_what_would_happen_and_prints_the_answer_or_json_for_programs(idle: Served, request_file: Path) -> None:
    archive = str(idle.store / idle.pack("obey"))

    done = idle.run("check", archive, str(request_file))

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 1
    for line in (
        "model     obey 1.0",
        "handler   obey.py",
        "batching  auto, at most 1 request,",
        "answer    status 200",
    ):
        assert line in done.stderr
    assert not (idle.folder / "state").exists()
    done = idle.run("check", archive, str(request_file), "--json")
    document = json.loads(done.stdout)
    assert (document["model"]["name"], document["model"]["batchSize"]) == ("obey", 1)
    assert document["answer"]["status"] == 200
    assert json.loads(document["answer"]["body"])["rows"] == 1
    assert "handler   obey.py" not in done.stderr


def test_a_handler_that_raises_or_does_not_load_fails_the_check(idle: Served, request_file: Path) -> None:
    request_file.write_text('{"do": "raise"}')

    done = idle.run("check", str(idle.store / idle.pack("obey")), str(request_file))

    assert (done.returncode, done.stdout) == (1, "")
    assert 'raise ValueError("as you wish")' in done.stderr
    assert "error: Prediction failed: ValueError: as you wish" in done.stderr

    done = idle.run("check", str(idle.store / idle.pack("no_load")))

    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert "FileNotFoundError: the vocabulary is missing" in done.stderr


def test_a_model_is_warmed_up_before_it_is_ready(served: Served, request_file: Path) -> None:
    request_file.write_text('{"do": "print"}')
    config = f"batchSize: 2\nwarmup:\n  file: {request_file.name}\n  contentType: application/json\n"

    served.register("obey", config=config, extra_files=str(request_file))

    assert served.tsctl("logs", "obey").count("printed by the handler") == 3  # one row, then two
