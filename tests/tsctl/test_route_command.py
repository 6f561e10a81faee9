"""`tsctl route`: sets, shows and removes the route of a model."""

import json
import re

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tests.tsctl.test_model_commands import model


def test_weights_and_options_are_sent_as_parameters(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("PUT /models/net/route", {"status": "routed"})

    result = invoke("route", "net", "1.0=90", "2.0=10", "--sticky", "ip", "--shadow", "3.0", "--sample", "5%",
                    "--allow-effects")  # fmt: skip

    (request,) = daemon.requests
    assert request.query == {
        "weights": "1.0=90 2.0=10", "sticky": "ip", "shadow": "3.0", "sample": "5%", "allow_effects": "true",
    }  # fmt: skip
    assert result.stdout == "routed\n"


@pytest.mark.parametrize(
    ("route", "said"),
    [
        (None, "`net` has no route: version 1.0 answers\n"),
        ({"weights": {"1.0": 90, "2.0": 10}}, "`net` is routed: 1.0=90 2.0=10\n"),
        (
            {"weights": {"1.0": 1}, "sticky": "header:x-user", "shadow": "3.0", "sample": 0.05},
            "`net` is routed: 1.0=1, sticky by x-user, 5 % copied to 3.0\n",
        ),
    ],
)
def test_without_weights_the_route_is_shown(
    invoke: Invoke, daemon: FakeDaemon, route: dict[str, object] | None, said: str
) -> None:
    document = {"modelName": "net", "default": "1.0", "route": route}
    daemon.answer("GET /models/net/route", document)

    assert invoke("route", "net").stdout == said
    assert json.loads(invoke("route", "net", "--json").stdout) == document


def test_a_route_is_removed(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("DELETE /models/net/route", {"status": "removed"})

    assert invoke("route", "net", "--remove").stdout == "removed\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["net/1.0", "1.0=1"], "`net/1.0` names a version"),
        (["net", "--sticky", "ip"], "the route has no versions: `tsctl route net 1.0=90 2.0=10`"),
        (["net", "1.0=1", "--remove"], "`--remove` takes no versions"),
    ],
)
def test_wrong_usage(invoke: Invoke, arguments: list[str], said: str) -> None:
    result = invoke("route", *arguments)

    assert result.exit_code == 2
    assert said in result.stderr


def test_ls_shows_the_shares_of_a_model_with_a_route(invoke: Invoke, daemon: FakeDaemon) -> None:
    models = [
        model("net", "1.0") | {"share": 0.9, "shadow": False},
        model("net", "2.0", default=False) | {"share": 0.1, "shadow": False},
        model("net", "3.0", default=False) | {"share": 0.0, "shadow": True},
        model("other", "1.0"),
    ]
    daemon.answer("GET /tsctl/status", {"models": models})

    lines = invoke("ls").stdout.splitlines()

    at = lines[0].index("TRAFFIC")
    assert [re.split(" {2,}", line[at:])[0] for line in lines[1:]] == ["90 %", "10 %", "shadow", "-"]
