"""A daemon whose every write to a file fails goes on answering, and says what a restart will not know."""

import resource

import pytest

from tests.e2e.served import Served


@pytest.mark.thin
def test_predictions_go_on_and_a_change_says_that_it_is_not_remembered(served: Served) -> None:
    served.register("echo")
    before = resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    refused = served.command("PATCH", "/models/echo?batch_size=3")

    assert refused.status == 500
    assert "it could not be saved and will be lost on restart: cannot write" in refused.json["message"]
    assert served.ask("/predictions/echo", b"x").status == 200
    assert served.ask("/predictions/echo", bytes(100_000), content_type="application/octet-stream").status == 200
    archive = served.command("POST", f"/models?url={served.pack('echo', name='other')}")
    assert archive.status == 400 and "cannot be unpacked" in archive.json["message"]

    resource.prlimit(served.pid, resource.RLIMIT_FSIZE, before)
    assert served.command("PATCH", "/models/echo?max_batch_delay=7").status == 200
    served.stop()
    served.start()
    described = served.describe("echo")
    assert (described["batchSize"], described["maxBatchDelay"]) == (3, 7)
    assert [model["name"] for model in served.status["models"]] == ["echo"]
