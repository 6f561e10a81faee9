"""A router finds the route, and answers every request whatever the route does."""

import asyncio
import json
import logging
from collections.abc import Callable

import pytest

from tests.http.peer import Peer, Server, get
from tsctl.daemon.core.errors import QueueFull, ResourceNotFound
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response
from tsctl.daemon.http.router import Route, Router, join


def name_of(name: str) -> Route:
    """A route that answers its name and the further segments."""

    def route(exchange: Exchange, path: list[str]) -> None:
        exchange.respond(Response(200, json.dumps([name, *path]).encode()))

    return route


def ask(route: Route, *before: Callable[[Peer], None]) -> Peer:
    """Ask a route, in a loop, and wait for its tasks."""

    async def ask_in_loop() -> Peer:
        peer = Server(Router({"x": route})).connect()
        peer.send(get("/x"))
        for call in before:
            call(peer)
        for _ in range(3):
            await asyncio.sleep(0)
        return peer

    return asyncio.run(ask_in_loop())


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        pytest.param("/a", ["a"], id="by the first segment"),
        pytest.param("/a/b/c?d", ["a", "b", "c"], id="which gets the further ones"),
        pytest.param("/a/", ["a"], id="without an empty last one"),
        pytest.param("/", ["root"], id="and the root has a route of its own"),
        pytest.param("/?a", ["root"], id="with a query too"),
    ],
)
def test_a_route_is_found(target: str, answer: list[str]) -> None:
    peer = Server(Router({"a": name_of("a"), "": name_of("root")})).connect()

    peer.send(get(target))

    assert json.loads(peer.bodies[0]) == answer


@pytest.mark.parametrize("target", ["/b", "/A", "//a", "/"])
def test_without_a_route_there_is_a_404(target: str) -> None:
    peer = Server(Router({"a": name_of("a")})).connect()

    peer.send(get(target))

    assert peer.statuses == [404]
    assert json.loads(peer.bodies[0])["type"] == "ResourceNotFoundException"


def full(exchange: Exchange, path: list[str]) -> None:
    raise QueueFull("The queue is full.")


async def late_full(exchange: Exchange, path: list[str]) -> None:
    await asyncio.sleep(0)
    raise QueueFull("The queue is full.")


@pytest.mark.parametrize("route", [full, late_full])
def test_an_error_of_a_route_is_its_answer(route: Route) -> None:
    peer = ask(route)

    assert peer.statuses == [503]
    assert json.loads(peer.bodies[0])["message"] == "The queue is full."


def bug(exchange: Exchange, path: list[str]) -> None:
    raise KeyError("lost")


async def late_bug(exchange: Exchange, path: list[str]) -> None:
    raise KeyError("lost")


@pytest.mark.parametrize("route", [bug, late_bug])
def test_a_bug_is_a_500_and_its_traceback_is_in_the_log(route: Route, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "tsctl.daemon.http"):
        peer = ask(route)

    assert peer.statuses == [500]
    assert "KeyError: 'lost'" in json.loads(peer.bodies[0])["message"]
    assert "KeyError: 'lost'" in caplog.text
    assert "Traceback" in caplog.text
    assert not peer.transport.closed


def test_a_bug_after_the_answer_has_begun_cuts_it_off() -> None:
    async def route(exchange: Exchange, path: list[str]) -> None:
        exchange.start(Response(200))
        raise KeyError("lost")

    assert ask(route).transport.aborted


def test_a_bug_after_the_answer_is_complete_harms_nobody() -> None:
    def route(exchange: Exchange, path: list[str]) -> None:
        exchange.respond(Response(200, b"whole"))
        raise KeyError("lost")

    peer = ask(route)

    assert peer.bodies == [b"whole"]
    assert not peer.transport.closed


def test_a_coroutine_goes_on_when_its_client_has_left() -> None:
    steps: list[str] = []

    async def route(exchange: Exchange, path: list[str]) -> None:
        steps.append("begun")
        await asyncio.sleep(0)
        steps.append("ended")
        exchange.respond(Response(200))

    peer = ask(route, Peer.leave)

    assert steps == ["begun", "ended"]
    assert peer.answers == []


def only_for(name: str, *paths: list[str]) -> Route:
    """A route that answers these paths."""

    def route(exchange: Exchange, given: list[str]) -> None:
        if given not in paths:
            raise ResourceNotFound
        name_of(name)(exchange, given)

    return route


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        pytest.param("/x/1", ["first", "1"], id="the first table that knows the path answers"),
        pytest.param("/x/2", ["second", "2"], id="or else the next"),
        pytest.param("/y", ["alone"], id="a segment of one table is that table's"),
        pytest.param("/x/3", None, id="and what none knows is not found"),
    ],
)
def test_tables_are_joined(target: str, answer: list[str] | None) -> None:
    first = {"x": only_for("first", ["1"]), "y": name_of("alone")}
    peer = Server(Router(join(first, {"x": only_for("second", ["2"])}))).connect()

    peer.send(get(target))

    assert (json.loads(peer.bodies[0]) if peer.statuses == [200] else None) == answer


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        pytest.param("/x/1/word", ["below", "1", "word"], id="a route for a third segment is asked first"),
        pytest.param("/x/2/word", ["x", "2", "word"], id="or else that for the first segment"),
        pytest.param("/x/1/other", ["x", "1", "other"], id="which has what is below another third segment"),
        pytest.param("/x", ["x"], id="and shorter paths"),
        pytest.param("/y/1/word", ["below", "1", "word"], id="a first segment needs no route of its own"),
        pytest.param("/y/1", None, id="and then nothing else below it is found"),
        pytest.param("/z/1/word", ["below", "1", "word"], id="before one for any second segment"),
        pytest.param("/z/3/word", ["named", "3", "word"], id="which is asked next"),
        pytest.param("/z/3", ["named", "3"], id="of shorter paths at once"),
        pytest.param("/z/2", ["z", "2"], id="or else that for the first segment, too"),
        pytest.param("/z", ["z"], id="and of a path without a second one never"),
    ],
)
def test_a_route_may_name_the_third_segment_or_ask_for_a_second(target: str, answer: list[str] | None) -> None:
    below, named = only_for("below", ["1", "word"]), only_for("named", ["3", "word"], ["3"])
    tables = {"x": name_of("x"), "z": name_of("z")}, {f"{first}/*/word": below for first in "xyz"}, {"z/*": named}
    peer = Server(Router(join(*tables))).connect()

    peer.send(get(target))

    assert (json.loads(peer.bodies[0]) if peer.statuses == [200] else None) == answer


def test_another_error_of_the_first_table_is_the_answer() -> None:
    peer = Server(Router(join({"x": full}, {"x": name_of("second")}))).connect()

    peer.send(get("/x"))

    assert peer.statuses == [503]


class Elsewhere(ResourceNotFound):
    """A refusal that says more than that there is no route."""


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        pytest.param(Elsewhere, ResourceNotFound, Elsewhere, id="the first's"),
        pytest.param(ResourceNotFound, Elsewhere, Elsewhere, id="the second's"),
        pytest.param(ResourceNotFound, ResourceNotFound, ResourceNotFound, id="neither's"),
    ],
)
def test_of_two_refusals_the_one_that_says_more_is_the_answer(
    first: type[ResourceNotFound], second: type[ResourceNotFound], told: type[ResourceNotFound]
) -> None:
    def refusing(error: type[ResourceNotFound]) -> Route:
        def route(exchange: Exchange, path: list[str]) -> None:
            raise error

        return route

    joined = join({"x": refusing(first)}, {"x": refusing(second)})

    with pytest.raises(ResourceNotFound) as raised:
        joined["x"](None, [])  # type: ignore[arg-type]  # no route looks at it
    assert type(raised.value) is told
