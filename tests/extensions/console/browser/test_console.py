"""Each view of the console as a person uses it: mouse, keyboard, a phone, many models, a daemon that goes and comes."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.extensions.console.browser.conftest import MODELS, Console
from tests.kit.shelf import needs

pytestmark = needs("live")  # without which the page shows what an older daemon tells

PHONE = {"width": 375, "height": 760}
TITLES = ("Last failed predictions", "Requests a second", "Log")


def model(number: int) -> dict[str, Any]:
    """One of many models of a document of /tsctl/live; every tenth is in trouble."""
    return {
        "name": f"a-model-with-a-rather-long-name-{number:03}", "version": "1.0", "default": True,
        "state": "crashing" if number % 10 == 0 else "ready", "ready": 1, "wanted": 2, "restarting": 0, "batchSize": 8,
        "maxBatchDelay": 5.0, "arrivalsPerSecond": number / 3, "policy": "auto", "queued": number, "running": 1,
        "requests": {"total": number, "codes": {"200": number}}, "refused": {}, "expired": {}, "workers": [],
        "latency": {"bounds": [0.001, 0.01], "counts": [number, 0, 0], "sum": 0.1}, "lastError": None,
        "batches": {"total": number, "requests": number},
    }  # fmt: skip


def listing(page: Any, console: Console, models: list[dict[str, Any]]) -> None:
    """Let the page see these models instead of the daemon's."""
    live = console.served.command("GET", "/tsctl/live").json | {"models": models}
    page.route("**/api/live", lambda route: route.fulfill(json=live))


def overflow(page: Any) -> int:
    """How many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def send(page: Any, console: Console, name: str, text: str) -> None:
    page.goto(f"{console.url}/#/playground/{name}/1.0")
    page.get_by_text("Text", exact=True).click()
    page.get_by_role("textbox", name="Text").fill(text)
    page.get_by_role("button", name="Send").click()


def test_a_model_shows_its_requests_batches_workers_and_events(page: Any, console: Console) -> None:
    page.get_by_role("link", name="labels", exact=True).click()
    page.locator(".settings").wait_for()
    for _ in range(3):
        console.served.ask("/predictions/labels", b"hello", **{"Content-Type": "text/plain"})

    page.locator(".bars").first.wait_for()
    page.locator(".bars").get_by_text("1 of 32").wait_for()
    assert page.get_by_text("registered from").is_visible()
    assert page.locator("canvas").count() == 2
    assert page.get_by_text("Status 200").is_visible()


@pytest.mark.parametrize(
    ("told", "cell"),
    [
        pytest.param({"pid": 4711, "node": "gpu-3/0a1b2c3d"}, "4711 on gpu-3/0a1b2c3d", id="node, of Ray's workers"),
        pytest.param(
            {"gpuMemory": {"0": 3 * 2**30, "1": None}},
            "0 (A Card): 3072 MiB of 4096 MiB, 1",
            id="GPUs, their names, and what it holds there",
        ),
    ],
)
def test_a_worker_shows_its(told: dict[str, Any], cell: str, page: Any, console: Console) -> None:
    live = console.served.command("GET", "/tsctl/live").json
    [finder] = [each for each in live["models"] if each["name"] == "finder"]
    finder["workers"][0] |= told  # as the daemon tells of such a worker
    live["gpus"] = [{"name": "A Card", "uuid": "GPU-a", "memory": 2**32}]
    page.route("**/api/live", lambda route: route.fulfill(json=live))

    page.goto(f"{console.url}/#/models/finder/1.0")

    page.get_by_role("cell", name=cell).wait_for()
    assert page.get_by_role("columnheader", name="GPU").count() == ("gpuMemory" in told)


def test_batches_are_told_as_they_are_sent_with_their_reasons(page: Any, console: Console) -> None:
    page.goto(f"{console.url}/#/models/words/1.0")
    page.get_by_text("No batch was sent yet. Send").wait_for()

    console.served.ask("/predictions/words", b"one two", **{"Content-Type": "text/plain"})

    row = page.locator(".batches tbody tr").first
    row.wait_for()
    told = console.served.command("GET", "/tsctl/batches?model=words").json["batches"][-1]
    assert "1 of" in row.inner_text()
    assert row.get_attribute("title") == told["meaning"]
    assert page.locator(".strip rect").count() == 1


def test_the_reasons_of_batches_are_words(page: Any, console: Console) -> None:
    batch = {
        "time": 1.0, "version": "1.0", "limit": 8, "meaning": "", "waitedMs": 6.04, "queued": 0, "worker": 7,
        "tookMs": 27.4, "failed": 0,
    }  # fmt: skip
    reasons = [("full", 8), ("nobody_left", 5), ("delay", 3), ("a_reason_of_tomorrow", 1)]
    batches = [
        batch | {"sequence": index + 1, "reason": reason, "size": size} for index, (reason, size) in enumerate(reasons)
    ]
    page.route("**/api/batches?*", lambda route: route.fulfill(json={"last": 4, "batches": batches}))
    page.goto(f"{console.url}/#/models/labels/1.0")

    page.locator(".batches tbody tr").first.wait_for()
    cells = [each.split("\t")[1:3] for each in page.locator(".batches tbody tr").all_inner_texts()]

    assert cells == [
        ["1 of 8", "a_reason_of_tomorrow"], ["3 of 8", "waited 6.0 ms"], ["5 of 8", "nobody else is coming"],
        ["8 of 8", "full"],
    ]  # fmt: skip


def test_a_failed_prediction_is_there_with_its_traceback(page: Any, console: Console) -> None:
    console.served.ask("/predictions/labels", b"fail", **{"Content-Type": "text/plain"})
    page.goto(f"{console.url}/#/models/labels/1.0")

    failed = page.locator("details.error").first
    failed.wait_for()
    failed.locator("summary").click()

    assert "raise ValueError" in failed.locator("pre").inner_text()
    for _ in range(2):
        with page.expect_response("**/api/models/**"):
            pass
    assert failed.locator("pre").is_visible()
    assert page.locator("details.error img").count() == 0


def test_failures_stand_above_the_charts_and_the_log_below(page: Any, console: Console) -> None:
    console.served.ask("/predictions/labels", b"fail", **{"Content-Type": "text/plain"})
    page.goto(f"{console.url}/#/models/labels/1.0")
    page.locator("details.error").first.wait_for()

    tops = [page.get_by_role("heading", name=name, exact=True).bounding_box()["y"] for name in TITLES]

    assert tops == sorted(tops)
    page.locator("pre.log").or_(page.get_by_text("written nothing")).first.wait_for()


def test_a_chart_begins_before_the_page_was_opened(page: Any, console: Console) -> None:
    times = [time.time() - 900 + 10 * step for step in range(90)]
    rates = {"requestsPerSecond": [5.0] * 90, "errorsPerSecond": [0.0] * 90, "queued": [0] * 90}
    told = {"name": "words", "version": "1.0", "time": times, "p50Ms": [10.0] * 90, "p99Ms": [None] * 90} | rates
    page.route("**/api/history**", lambda route: route.fulfill(json={"every": 10, "models": [told]}))

    with page.expect_response("**/api/history**"):
        page.goto(f"{console.url}/#/models/words/1.0")
    begins = page.evaluate(
        "async () => { const { course } = await import('/history.js'); for (let left = 300; left; left--) {"
        " const [times, rates] = course('words', '1.0', 'rate'); if (times.length > 90) return [times[0], rates[0]];"
        " await new Promise((then) => setTimeout(then, 50)); } }"
    )

    assert begins == [times[0], 5.0]


def test_the_playground_opens_on_the_first_model_that_works(page: Any, console: Console) -> None:
    failed = model(1) | {"name": "a-broken", "state": "failed", "troubles": ["failed"]}
    works = model(2) | {"name": "works", "state": "ready"}
    listing(page, console, [failed, works])
    page.goto(f"{console.url}/#/playground")
    select = page.get_by_label("Model", exact=True)
    select.get_by_text("a-broken").wait_for(state="attached")

    assert json.loads(select.input_value())[0] == "works"
    assert select.locator("option").first.text_content() == "a-broken 1.0 (failed)"


def test_those_in_trouble_are_first_with_the_reason_and_long_names_lose_their_middle(
    page: Any, console: Console
) -> None:
    name = "a-name-of-sixty-characters-that-differs-from-others-at-its-end"
    troubled = model(2) | {"name": name, "state": "ready", "troubles": ["2.8 % errors"]}
    listing(page, console, [model(1) | {"name": "first", "state": "ready"}, troubled])
    row = page.locator("tbody tr").first
    row.get_by_text("ready, 2.8 % errors").wait_for()

    assert "bad" in row.locator(".state").get_attribute("class")
    link = row.get_by_role("link")
    assert link.get_attribute("title") == name
    assert link.text_content() == f"{name[:18]}…{name[-17:]}"
    page.get_by_text("2 versions, 1 in trouble").wait_for()


def test_the_reason_of_a_workers_end_names_the_worker(page: Any, console: Console) -> None:
    described = console.served.command("GET", "/models/finder/1.0").json
    described[0]["tsctl"]["lastExit"] = "killed by SIGKILL"
    page.route("**/api/models/finder/1.0", lambda route: route.fulfill(json=described))

    page.goto(f"{console.url}/#/models/finder/1.0")

    page.locator(".notice").get_by_text("The last worker that ended: killed by SIGKILL").wait_for()


def test_of_a_model_that_is_not_registered_the_page_says_only_that(page: Any, console: Console) -> None:
    page.goto(f"{console.url}/#/models/nosuch/1.0")
    page.locator(".notice").get_by_text("Model not found: nosuch").wait_for()

    assert not any(card.is_visible() for card in page.locator("section.card").all())
    console.served.tsctl("register", str(MODELS / "labels.py"), "--name", "nosuch")
    page.get_by_role("heading", name="Settings").wait_for()
    console.served.tsctl("unregister", "nosuch")


def test_a_daemon_of_an_older_version_is_shown_too(page: Any, console: Console) -> None:
    """It has neither /tsctl/live nor batches, events or failed predictions."""

    def older(route: Any) -> None:
        route.fulfill(status=404, json={"message": "Requested resource is not found"})

    def described(route: Any) -> None:
        document = console.served.describe("labels")
        for name in ("events", "errors"):
            document["tsctl"].pop(name)
        route.fulfill(json=[document])

    for name in ("live", "batches?*", "events?*"):
        page.route(f"**/api/{name}", older)
    page.route("**/api/models/**", described)
    page.reload()
    page.get_by_role("row", name="labels").wait_for()
    assert page.get_by_role("heading", name="Events").count() == 0
    page.goto(f"{console.url}/#/models/labels/1.0")
    page.locator(".settings").wait_for()
    for _ in range(3):
        console.served.ask("/predictions/labels", b"hello", **{"Content-Type": "text/plain"})

    page.locator("dl.facts div", has_text="Mean batch").get_by_text("1.0", exact=True).wait_for()
    assert page.get_by_role("heading", name="Batches as they are sent").count() == 0
    assert page.get_by_role("heading", name="Last failed predictions").count() == 0


def test_a_setting_changes_after_its_command_was_shown_and_a_refused_one_says_why(page: Any, console: Console) -> None:
    page.goto(f"{console.url}/#/models/finder/1.0")
    field = page.get_by_label("batch size", exact=True)
    apply = page.get_by_role("button", name="Apply")
    field.wait_for()
    assert apply.is_disabled()

    field.fill("3")

    page.get_by_text("tsctl set finder/1.0 --batch-size 3").wait_for()
    assert console.served.describe("finder")["batchSize"] != 3
    apply.click()
    page.get_by_text("Applied.").wait_for()
    assert console.served.describe("finder")["batchSize"] == 3
    field.fill("none")
    apply.click()
    page.get_by_text("batch_size").last.wait_for()


def test_boxes_are_drawn_on_the_dropped_picture(page: Any, console: Console, tmp_path: Path) -> None:
    Image.new("RGB", (320, 200), "#ffffff").save(tmp_path / "white.png")
    page.goto(f"{console.url}/#/playground/finder/1.0")

    page.set_input_files("input[type=file]", str(tmp_path / "white.png"))
    page.get_by_role("button", name="Send").click()

    canvas = page.get_by_role("img", name="The picture with 2 boxes")
    canvas.wait_for()
    edge = canvas.evaluate("c => [...c.getContext('2d').getImageData(32, 100, 1, 1).data]")
    middle = canvas.evaluate("c => [...c.getContext('2d').getImageData(90, 100, 1, 1).data]")
    assert middle == [255, 255, 255, 255] != edge
    assert page.get_by_text("97.0 %").is_visible()


def test_a_mask_lies_over_the_picture(page: Any, console: Console, tmp_path: Path) -> None:
    Image.new("RGB", (200, 200), "#ffffff").save(tmp_path / "white.png")
    page.goto(f"{console.url}/#/playground/masks/1.0")

    page.set_input_files("input[type=file]", str(tmp_path / "white.png"))
    page.get_by_role("button", name="Send").click()

    canvas = page.get_by_role("img", name="The picture with a mask of 1 classes")
    canvas.wait_for()
    left, right = (
        canvas.evaluate(f"c => [...c.getContext('2d').getImageData({x}, 100, 1, 1).data]") for x in (40, 160)
    )
    assert left != right == [255, 255, 255, 255]


def test_an_answer_in_pieces_is_shown_as_text(page: Any, console: Console) -> None:
    send(page, console, "words", "one <i>two</i> three")

    page.get_by_text("Status 200").wait_for()
    page.get_by_text("<i>two</i>").last.wait_for()
    assert page.locator("main i").count() == 0


def test_labels_are_bars_and_the_request_is_there_for_a_terminal(page: Any, console: Console) -> None:
    send(page, console, "labels", "aab")

    page.get_by_text("66.7 %").wait_for()
    shown = page.locator(".command code").all_inner_texts()
    assert any(f"{console.served.url}/predictions/labels/1.0" in each for each in shown)
    assert any("tsctl.Client(" in each for each in shown)
    assert "Status 200" in page.locator("main").inner_text()


def test_the_times_that_the_daemon_tells_are_shown(page: Any, console: Console) -> None:
    told = 'queue;dur=6.1, worker;dur=27.4, total;dur=34.0, batch;desc="5"'
    page.route(
        "**/api/predictions/**",
        lambda route: route.fulfill(status=200, body="text", headers={"Server-Timing": told}),
    )
    send(page, console, "labels", "a")

    page.get_by_text("34 ms, in a batch of 5, waited 6.1 ms").wait_for()


def test_the_daemon_tells_the_times_of_an_answer(page: Any, console: Console) -> None:
    send(page, console, "labels", "a")

    page.get_by_text(re.compile(r"· \d+(\.\d)? ms, in a batch of 1, waited \d+(\.\d)? ms$")).wait_for()


def test_what_an_error_says_is_text(page: Any, console: Console) -> None:
    send(page, console, "labels", "fail")

    page.get_by_text(re.compile("Status 5")).wait_for()
    assert page.locator("main pre img").count() == 0


def test_the_keyboard_alone_sends_a_request(page: Any, console: Console) -> None:
    page.get_by_role("row", name="finder").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Playground"
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Playground").wait_for()
    page.get_by_label("Model").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.type("labels")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "radio"
    for _ in range(2):  # as it may stand at `JSON`
        if not page.get_by_role("radio", name="Text").is_checked():
            page.keyboard.press("ArrowRight")
    page.get_by_role("textbox", name="Text").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.type("zz")
    page.keyboard.press("Control+Enter")

    page.get_by_text("Status 200").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["models", "models/labels/1.0", "playground"])
def test_every_view_fits_a_phone_in_both_schemes(page: Any, console: Console, view: str, scheme: str) -> None:
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{console.url}/#/{view}")
    page.locator(".card").first.wait_for()

    assert overflow(page) <= 0
    paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(json.loads(f"[{paper[4:-1]}]")) > 384) == (scheme == "light")


def test_the_troubles_of_a_model_fit_a_phone(page: Any, console: Console) -> None:
    troubles = ["100 % errors", "a worker ended 35 s ago"]
    listing(page, console, [model(1) | {"name": "broken", "troubles": troubles}])
    page.get_by_text("a worker ended 35 s ago").wait_for()

    page.set_viewport_size(PHONE)

    assert overflow(page) <= 0


def test_a_hundred_models_are_listed_filtered_and_fit_a_phone(page: Any, console: Console) -> None:
    listing(page, console, [model(number) for number in range(100)])
    page.get_by_text("100 versions, 10 in trouble").wait_for()
    assert page.locator("tbody tr").count() == 100
    top = page.get_by_role("heading", name="Events").bounding_box()["y"]
    assert top < page.get_by_role("row", name="name-000").bounding_box()["y"]  # in sight without scrolling
    page.set_viewport_size(PHONE)
    assert overflow(page) <= 0

    page.get_by_label("Filter models by name").fill("name-04")

    page.locator("tbody tr").nth(10).wait_for(state="detached")
    assert page.locator("tbody tr").count() == 10
    assert page.get_by_label("Filter models by name").evaluate("each => each === document.activeElement")


@pytest.mark.parametrize(
    ("fragment", "tab"),
    [("", "Models"), ("#/", "Models"), ("#/nowhere", "Models"), ("#/models/labels/1.0", "Models"), ("#/tune", "Tune")],
)
def test_the_tab_of_the_view_is_marked(page: Any, console: Console, fragment: str, tab: str) -> None:
    page.goto("about:blank")
    page.goto(f"{console.url}/{fragment}")
    page.locator("main *").first.wait_for()

    assert page.locator("nav a[aria-current=page]").all_inner_texts() == [tab]


def test_without_models_the_page_says_how_to_register_one(page: Any, console: Console) -> None:
    listing(page, console, [])

    page.get_by_text("tsctl register MODEL.mar").wait_for()


def test_a_daemon_goes_away_and_comes_back(page: Any, console: Console) -> None:
    page.get_by_role("row", name="labels").wait_for()

    console.served.tsctl("stop")
    page.get_by_text("The daemon is away").wait_for()
    assert page.get_by_role("row", name="labels").is_visible()  # what was known stays
    page.get_by_role("link", name="labels").first.click()
    page.get_by_role("heading", name="labels").wait_for()
    assert not page.get_by_text("No batch was sent yet. Send").is_visible()  # nothing is known of a model's batches
    page.go_back()
    console.served.start()

    page.get_by_role("status").get_by_text(f"pid {console.served.pid}").wait_for()
    page.get_by_role("row", name="labels").wait_for()


def test_tensors_begin_with_a_request_that_the_model_takes(page: Any, console: Console) -> None:
    page.goto(f"{console.url}/#/playground/labels/1.0")
    page.get_by_text("Tensors", exact=True).click()
    box = page.get_by_role("textbox", name="Tensors")
    page.get_by_text("BYTES").last.wait_for()  # in the request for curl
    sent = json.loads(box.input_value())

    page.get_by_role("button", name="Send").click()

    assert [(each["datatype"], each["shape"]) for each in sent["inputs"]] == [("BYTES", [1])]
    page.get_by_text("Status 200").wait_for()
    assert page.get_by_text("/v2/models/labels/versions/1.0/infer").is_visible()


def test_tensors_are_not_offered_to_a_model_that_answers_in_pieces(page: Any, console: Console) -> None:
    page.goto(f"{console.url}/#/playground/labels/1.0")
    page.get_by_text("Tensors", exact=True).click()
    page.get_by_role("textbox", name="Tensors").wait_for()
    page.get_by_label("Model").select_option("words 1.0")

    page.get_by_text("This model answers in pieces, and a request in tensors takes one answer.").wait_for()
    assert page.get_by_role("radio", name="Tensors").is_disabled()
    assert page.get_by_role("radio", name="Text").is_checked()
    page.get_by_role("textbox", name="Text").fill("one two")
    page.get_by_role("button", name="Send").click()
    page.get_by_text("Status 200").wait_for()
    page.get_by_label("Model").select_option("labels 1.0")
    assert page.get_by_role("radio", name="Tensors").is_enabled()
