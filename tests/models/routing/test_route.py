"""The texts of a route are read, and impossible ones are refused by name and value."""

import json

import pytest

from tests.kit.said import reason, said_in
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.models.routing.route import MOST_VERSIONS, Route, parse_route, parse_share
from tsctl.daemon.models.routing.routes import Routes, key_of


@pytest.mark.parametrize(
    "weights",
    ["1.0=90 2.0=10", "1.0=90,2.0=10", {"1.0": 90, "2.0": 10}, {"1.0": "90", "2.0": 10.0}, "1.0=90 2.0=10 3.0=0"],
)
def test_weights_are_texts_or_objects_and_zero_is_none(weights: str | dict[str, object]) -> None:
    route = parse_route(weights)

    assert route.weights == (("1.0", 90.0), ("2.0", 10.0))
    assert (route.main, route.share("1.0"), route.share("3.0")) == ("1.0", 0.9, 0.0)
    assert str(route) == "1.0=90 2.0=10"
    assert len(parse_route({str(version): 1 for version in range(MOST_VERSIONS)}).weights) == MOST_VERSIONS


@said_in("impossible.txt")
def test_an_impossible_route_is_refused(given: str) -> str:
    return reason(lambda: parse_route(**json.loads(given)), BadRequest)


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("0.05", 0.05), (0.5, 0.5), ("100 %", 1.0)])
def test_a_sample_is_a_share_or_a_percentage(text: str | float, share: float) -> None:
    assert parse_share(text) == pytest.approx(share)


@pytest.mark.parametrize(
    ("sticky", "peer", "key"),
    [
        pytest.param("", "10.0.0.1:99", "", id="without stickiness there is no key"),
        pytest.param("ip", "10.0.0.1:99", "10.0.0.1", id="an address without its port"),
        pytest.param("ip", "::1:99", "::1", id="of IPv6, as HTTP names it"),
        pytest.param("ip", "[::1]:99", "::1", id="and as gRPC does"),
        pytest.param("ip", "pid:12", "pid:12", id="a client of the control socket is its process"),
        pytest.param("header", "10.0.0.1:99", "ada", id="the usual header"),
        pytest.param("header:X-User", "10.0.0.1:99", "7", id="another header"),
        pytest.param("header:x-none", "10.0.0.1:99", "", id="a header that the request does not have"),
    ],
)
def test_the_key_of_a_client(sticky: str, peer: str, key: str) -> None:
    route = parse_route("1=1 2=1", sticky)

    assert key_of(route, [("X-Session-Id", "ada"), ("x-user", "7")], peer) == key


def test_a_version_that_leaves_takes_its_weight_along_and_the_last_one_the_route() -> None:
    routes = Routes()
    routes.put("m", Route(weights=(("1", 1.0), ("2", 1.0)), shadow="3"))

    routes.drop("m", "3")
    routes.drop("m", "1")
    assert routes.of("m") == Route(weights=(("2", 1.0),))
    routes.drop("m", "2")

    assert "m" not in routes
