"""Models that come and go in the console: residence, budget, autoscaling, routes and rollouts."""

import re
from typing import Any

from tests.extensions.console.browser.conftest import MODELS, Console
from tests.kit.shelf import needs

pytestmark = needs("live")


def test_a_model_that_comes_and_goes_says_why_it_is_absent_and_when_it_will_be(page: Any, console: Console) -> None:
    served = console.served
    served.tsctl("register", str(MODELS / "words.py"), "--name", "seldom", "--loading", "on_demand")
    try:
        served.ask("/predictions/seldom", b"hello", **{"Content-Type": "text/plain"})
        page.goto(f"{console.url}/#/models/seldom/1.0")
        page.get_by_text(
            re.compile(r"Loaded for .*: a request came, last used .* ago, unloaded in .* unless used")
        ).wait_for()

        served.tsctl("unload", "seldom")

        page.get_by_text(re.compile("Unloaded for .*: unloaded by an operator, .*no request loads it")).wait_for()
        page.goto(f"{console.url}/#/models")
        page.get_by_role("row", name="seldom").get_by_text("unloaded, by hand").wait_for()
    finally:
        served.tsctl("unregister", "seldom")


def test_a_budget_of_memory_is_told_with_its_use(page: Any, console: Console) -> None:
    live = console.served.command("GET", "/tsctl/live").json
    live |= {"memory": {"budget": {"host": 2**30, "gpu0": 2**31}, "used": {"host": 200 * 2**20, "gpu0": 0}}}
    page.route("**/api/live", lambda route: route.fulfill(json=live))

    page.reload()

    page.get_by_text("200 MiB of 1024 MiB budget, 0 MiB of 2048 MiB budget gpu0").wait_for()


def test_an_autoscaled_model_shows_its_range_and_its_last_change(page: Any, console: Console) -> None:
    served = console.served
    served.tsctl("set", "labels", "--target-queue", "50")
    served.tsctl("scale", "labels", "1", "--max-workers", "3")
    try:
        page.get_by_role("row", name="labels").get_by_text("1 / 1 (1–3)").wait_for()
        document = served.describe("labels")
        change = {
            "at": served.command("GET", "/tsctl/live").json["time"] - 70,
            "before": 1,
            "after": 2,
            "reason": "predicted wait 80 ms > 50 ms",
        }
        document["tsctl"]["autoscaling"]["lastChange"] = change  # as the daemon tells after one
        page.route("**/api/models/labels/**", lambda route: route.fulfill(json=[document]))
        page.goto(f"{console.url}/#/models/labels/1.0")

        page.get_by_text(
            re.compile(r"Autoscaling: 1 to 3 workers, target 50 ms, .*from 1 to 2 1 min .* ago")
        ).wait_for()
    finally:
        served.tsctl("set", "labels", "--target-queue", "0")
        served.tsctl("scale", "labels", "1")


def test_a_routed_model_shows_its_versions_and_the_evidence_of_a_rollout(page: Any, console: Console) -> None:
    live = console.served.command("GET", "/tsctl/live").json
    [known] = [each for each in live["models"] if each["name"] == "finder"]
    evidence = {
        "version": "1.0", "state": "stepping", "share": 20.0, "steps": [20.0, 100.0], "step": 0, "every": 60.0,
        "abortIf": [], "reason": None, "waitsFor": "30 s until the step is over",
        "findings": [{"condition": "errors>1%", "verdict": "open", "requests": 30, "bad": 1, "needed": 900}],
    }  # fmt: skip
    known |= {"share": 0.2, "shadow": False, "rollout": "step 1 of 2", "evidence": evidence}
    others = ({"version": "0.9", "share": 0.8}, {"version": "3.0", "share": 0.0, "shadow": True})
    live["models"] += [known | {"evidence": None} | other for other in others]
    page.route("**/api/live", lambda route: route.fulfill(json=live))

    page.goto(f"{console.url}/#/models/finder/1.0")

    card = page.locator("section", has=page.get_by_role("heading", name="Route"))
    card.get_by_text("Rollout: stepping, step 1 of 2 at 20 %. Steps: 20, 100 %").wait_for()
    rows = [each.split("\t")[:2] for each in card.locator("table").first.locator("tbody tr").all_inner_texts()]
    assert sorted(rows) == [["0.9", "80 %"], ["1.0this one", "20 %"], ["3.0", "shadow"]]
    assert "errors>1%\topen\t1 of 30, 900 good answers to come" in card.inner_text()
    assert card.get_by_text("30 s until the step is over").is_visible()


def test_a_model_without_a_route_has_no_card_for_one(page: Any, console: Console) -> None:
    page.goto(f"{console.url}/#/models/labels/1.0")
    page.locator(".settings").wait_for()

    assert not page.get_by_role("heading", name="Route").is_visible()
