"""`GET /` of an inference address: alive for programs, the models for people and for those who ask for JSON."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.http.peer import Answer, Server
from tests.kit.clients import FakeClient
from tsctl.daemon.extensions.welcome.page import WelcomeService, welcome
from tsctl.daemon.http.router import Audience, Router

HTML = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    asyncio.run(house.serve("m"))
    asyncio.run(house.serve("m", "2.0"))
    house.serve_predictions_alone()
    return house


def ask(house: House, *headers: str, method: str = "GET") -> Answer:
    (answer,) = house.send(method, "/", b"", *headers).answers
    return answer


def test_each_link_leads_somewhere(house: House) -> None:
    document: Any = json.loads(ask(house, "Accept: application/json").body)
    links = [*document["links"].values(), *(each["links"]["ready"] for each in document["models"])]

    assert [house.send("GET", link).statuses for link in links] == [[200]] * 5


def test_without_models_the_page_says_so(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()

    assert "No model is registered." in ask(House(tmp_path / "none"), HTML).body.decode()


def test_a_client_with_a_key_sees_its_models_alone(house: House) -> None:
    asyncio.run(house.serve("secret"))
    ask(house, "Accept: application/json")
    request = house.exchanges[-1].request
    request.client = FakeClient("mobile", models=("m",))

    document = json.loads(welcome(house.registry, request).body)

    assert {each["name"] for each in document["models"]} == {"m"}


def test_where_a_token_is_asked_for_strangers_learn_no_models_and_operators_all(house: House) -> None:
    service = house.service(WelcomeService)
    house.kernel.tokens.inference = "i"

    for audience, shown, models in (
        (Audience.CLIENTS, "", False),
        (Audience.CLIENTS, "Authorization: Bearer no", False),
        (Audience.CLIENTS, "Authorization: Bearer i", True),
        (Audience.OPERATORS, "", True),
    ):
        server = Server(Router(service.routes(audience)))
        peer = server.connect()
        peer.send(f"GET / HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n{shown or 'X: y'}\r\n\r\n".encode())
        document = json.loads(peer.answers[0].body)
        assert (peer.statuses, document["status"], "models" in document) == ([200], "alive", models), (audience, shown)
