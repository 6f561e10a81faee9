"""The built-in handlers, and handlers made of them."""

import base64
import json

from tests.lab.conformance.case import Case, Group, ask, ask_json, case
from tests.lab.conformance.cases.bodies import PARTS, TEXT_FILE, parts
from tests.lab.conformance.cases.images import GREY, HALVES, PALETTE, RED, TRANSPARENT, WHITE


def classifies(name: str, body: bytes, kind: str = "", model: str = "colours") -> Case:
    return case(name, ask(f"/predictions/{model}", body, kind=kind), uses=model)


GROUP = Group(
    "builtin",
    "Built-in handlers",
    (
        case("base_handler: a list of numbers", ask_json("/predictions/linear", [1.0, 2.0, 3.0]), uses="linear"),
        case("base_handler: integers", ask_json("/predictions/linear", [1, 2, 3]), uses="linear"),
        case("base_handler: a list under data", ask("/predictions/linear", parts(
            (TEXT_FILE, "application/json", b"[1, 0, -1]")), kind=PARTS), uses="linear"),
        case("base_handler: what is no array of numbers", ask_json("/predictions/linear", {"a": 1}), uses="linear"),
        case("base_handler: an array of the wrong shape", ask_json("/predictions/linear", [1.0]), uses="linear"),
        case("a BaseHandler with two stages of its own", ask_json("/predictions/staged", [1, 2, 3]), uses="staged"),
        case("a BaseHandler whose stage fails", ask_json("/predictions/staged", {"a": 1}), uses="staged"),
        case("a BaseHandler and a form", ask("/predictions/staged", parts(
            (TEXT_FILE, "application/json", b"[1, 0, -1]")), kind=PARTS), uses="staged"),
        case("a function with another name", ask("/predictions/entry"), uses="entry"),
        classifies("image_classifier: an image", RED),
        classifies("image_classifier: an image of two colours", HALVES),
        classifies("image_classifier: an image as image/png", HALVES, "image/png"),
        classifies("image_classifier: an image in a form", parts((TEXT_FILE, "image/png", HALVES)), PARTS),
        classifies("image_classifier: an image in base64", base64.b64encode(RED), "text/plain"),
        classifies("image_classifier: an array of numbers", json.dumps([[[0.5]] * 1, [[0.25]], [[1.0]]]).encode(),
                   "application/json"),
        classifies("image_classifier: a grey image", GREY),
        classifies("image_classifier: an image with transparency", TRANSPARENT),
        classifies("image_classifier: an image with a palette", PALETTE),
        classifies("image_classifier: bytes that are no image", b"no image"),
        classifies("image_classifier: text that is no base64", b"no base64!", "text/plain"),
        classifies("image_classifier: no body", b""),
        case("object_detector: an image", ask("/predictions/detector", HALVES), uses="detector"),
        case("object_detector: an image with a score above the threshold", ask("/predictions/detector", WHITE),
             uses="detector"),
        case("object_detector: bytes that are no image", ask("/predictions/detector", b"x"), uses="detector"),
        case("image_segmenter: an image", ask("/predictions/segmenter", HALVES), uses="segmenter"),
        case("text_classifier: bytes", ask("/predictions/text", b"A good film"), uses="text"),
        case("text_classifier: text", ask("/predictions/text", "a bad film", kind="text/plain"), uses="text"),
        case("text_classifier: text with tags, accents and contractions", ask(
            "/predictions/text", "<b>It's</b> a g\u00f6od F\u00eflm!", kind="text/plain"), uses="text"),
        case("text_classifier: a file in a form", ask("/predictions/text", parts(
            (TEXT_FILE, "text/plain", b"good film")), kind=PARTS), uses="text"),
        case("text_classifier: an explanation", ask("/explanations/text", "a good film", kind="text/plain"),
             uses="text"),
    ),
)  # fmt: skip
