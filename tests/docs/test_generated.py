"""The generated pages name everything that they are made of."""

import inspect
import re

import pytest

from docs.generate import PAGES
from docs.generate.badges import PICTURE, badges, draw
from docs.generate.states import MACHINES, drawing
from tsctl.cli import all_verbs, main
from tsctl.daemon.api.inference.openapi import describe_api
from tsctl.daemon.api.management.openapi import describe_management
from tsctl.daemon.core import errors
from tsctl.daemon.events.events import KINDS
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.tables import SETTINGS
from tsctl.terminal.examples import all_examples

TOLD = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.DaemonError)]
ROUTES = [*describe_api()["paths"], *describe_management(own=True)["paths"]]


@pytest.mark.parametrize("path", PAGES)
def test_a_generated_page_has_a_title(path: str) -> None:
    assert re.match(r"# \S", PAGES[path]())


@pytest.mark.parametrize("verb", all_verbs())
def test_a_verb_has_a_section_with_all_its_options(verb: str) -> None:
    section = PAGES["reference/commands.md"]().split(f"\n## tsctl {verb}\n")[1].split("\n## ")[0]

    command = main.get_command(main.make_context("tsctl", ["ls"], resilient_parsing=True), verb)
    assert command is not None
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    options = [param.opts[0] for param in shown if param.opts[0].startswith("-")]
    assert [option for option in options if option not in section] == []
    assert all(example.line in section for example in all_examples()[verb])


def test_every_setting_of_the_daemon_is_listed_once() -> None:
    listed = re.findall(r"^\| `(--[a-z-]+)` \|", PAGES["reference/daemon-settings.md"](), re.MULTILINE)

    assert listed == [setting.flag for setting in SETTINGS]


def test_every_error_that_clients_are_told_is_listed_with_its_status() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", PAGES["reference/errors.md"](), re.MULTILINE)

    expected = {each.__name__: str(each.status) for each in TOLD if each.__name__ not in ("DaemonError", "StartError")}
    assert {name: status for status, name in rows} == expected


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_is_listed(route: str) -> None:
    assert f" {route}`" in PAGES["reference/http.md"]()


def test_every_metric_is_listed() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", PAGES["reference/metrics.md"](), re.MULTILINE)

    assert listed == [row.name for each in EXTENSIONS for row in each.metrics]


def test_metrics_that_must_be_asked_for_are_marked() -> None:
    page = PAGES["reference/metrics.md"]()
    marked = re.findall(r"^\| `(\w+)` \|.*Only where `\?name\[\]=` names it\. \|$", page, re.MULTILINE)

    assert marked == [row.name for each in EXTENSIONS for row in each.metrics if row.asked]


def test_every_kind_of_events_is_listed_with_its_level() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \|", PAGES["reference/events.md"](), re.MULTILINE)

    assert rows == [(name, kind.level) for name, kind in KINDS.items()]


@pytest.mark.parametrize("title", MACHINES)
def test_a_drawing_has_every_arrow_of_its_table(title: str) -> None:
    transitions = MACHINES[title][1].TRANSITIONS

    arrows = re.findall(r"^    (\w+) --> (\w+): (.*)$", drawing(transitions), re.MULTILINE)
    drawn = {(here, event, there) for here, there, events in arrows for event in events.split(", ")}
    assert drawn == {
        (here.name, event.name.lower(), there.name)
        for here, arrows in transitions.items()
        for event, there in arrows.items()
    }


@pytest.mark.parametrize(("code", "text"), [("1", "daemon rejected"), ("2", "Wrong usage"), ("3", "socket")])
def test_exit_codes_of_the_command_line_are_explained(code: str, text: str) -> None:
    assert re.search(rf"^\| `{code}` \| .*{text}", PAGES["reference/exit-codes.md"](), re.MULTILINE)


def test_the_badges_are_drawn_from_the_project_as_it_is() -> None:
    assert dict(badges()).keys() >= {"version", "python", "license"}
    assert PICTURE.read_text() == draw(badges()), "`python -m tests.lab picture` draws them anew"
