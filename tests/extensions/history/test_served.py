"""The history of a real daemon: its control socket tells it, and no other address."""

import json

import pytest

from tests.e2e.served import Served


@pytest.mark.thin
def test_the_control_socket_tells_the_history_and_the_inference_address_does_not(served: Served) -> None:
    served.register("echo")

    told = served.command("GET", "/tsctl/history?model=echo").json

    assert told["every"] == 10 and told["models"][0]["name"] == "echo"
    assert served.ask("/tsctl/history").status == 404
    assert json.loads(served.tsctl("ls", "--json"))[0]["troubles"] == []
