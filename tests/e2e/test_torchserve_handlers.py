"""Handlers written the way TorchServe's users write them, unchanged, behind the real daemon."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.e2e.served import ARCHIVES, Answer, Served, eventually
from tsctl.daemon.marfile import Packing, write_archive
from tsctl.handlers.sdk.loader import import_file

OURS = ARCHIVES / "torchserve"
JSON = {"content_type": "application/json"}
BATCH = 3


class Archives:
    """Packs and registers the archives of this folder, with batches of three that wait to be full."""

    def __init__(self, served: Served, folder: Path) -> None:
        self.served = served
        self.folder = folder

    def file(self, name: str, content: Any) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def weights(self, name: str, content: Any) -> Path:
        path = self.folder / name
        torch.save(content, path)
        return path

    def register(self, handler: str, name: str, *extra: Path, model: str = "", config: str = "") -> None:
        module, _, function = handler.partition(":")
        path, model_file = OURS / f"{module}.py", OURS / f"{model}.py"
        packing = Packing(
            model_name=name,
            version="1.0",
            handler=(str(path) if path.is_file() else module) + (f":{function}" if function else ""),
            model_file=model_file if model else None,
            serialized_file=self.weights(f"{name}.pt", import_file(model_file).weights()) if model else None,
            extra_files=",".join(map(str, extra)),
            config_file=self.file(
                f"{name}/model-config.yaml", f"batchSize: {BATCH}\nmaxBatchDelay: 5000\nbatching: fixed\n{config}"
            ),
        )
        archive = write_archive(packing, self.served.store, force=True)
        self.served.tsctl("register", archive.name)

    def ask(self, name: str, *bodies: bytes, **headers: str) -> list[Answer]:
        """Send requests at the same time, a whole batch of them."""
        assert len(bodies) == BATCH
        with ThreadPoolExecutor(BATCH) as clients:
            return list(clients.map(lambda body: self.served.ask(f"/predictions/{name}", body, **headers), bodies))


@pytest.fixture(scope="module")
def archives(shared: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archives]:
    archives = Archives(shared, tmp_path_factory.mktemp("files"))
    labels = archives.file("index_to_name.json", {"0": "left", "1": "right", "2": "none"})
    stop_words = archives.file("stop_words.json", ["the", "a"])
    vocabulary = archives.weights("source_vocab.pt", {"<unk>": 0, "good": 1, "bad": 2, "great": 3})
    micro = "micro_batching:\n  micro_batch_size: 2\n  parallelism: {preprocess: 1, inference: 2, postprocess: 1}\n"
    import_file(OURS / "linear_net.py")  # before the threads, of which two would import it
    calls = {
        "argmax": partial(archives.register, "one_stage", "argmax", labels, model="linear_net"),
        "micro": partial(archives.register, "micro_batched", "micro", labels, model="linear_net", config=micro),
        "reviews": partial(archives.register, "text_classifier", "reviews", labels, vocabulary, model="bag_of_words"),
        "counter": partial(archives.register, "module_function", "counter", stop_words),
        "greeter": partial(archives.register, "plain_class", "greeter"),
        "measuring": partial(archives.register, "measuring", "measuring", config="handler: {profile: true}\n"),
        "gatekeeper": partial(archives.register, "gatekeeper", "gatekeeper"),
    }
    with ThreadPoolExecutor(4) as registering:
        for registered in [registering.submit(call) for call in calls.values()]:
            registered.result()
    yield archives
    for name in calls:
        shared.tsctl("unregister", name)


def test_a_module_function_is_initialized_once_and_reads_its_files(archives: Archives) -> None:
    answers = archives.ask("counter", b"the quick fox", b"a b", b"the")

    assert [answer.json for answer in answers] == [
        {"words": 2, "loaded": 1},
        {"words": 1, "loaded": 1},
        {"words": 0, "loaded": 1},
    ]
    assert "Loaded 2 stop words of counter" in archives.served.tsctl("logs", "counter")


@pytest.mark.thin
def test_a_plain_class_answers_text_with_headers_of_its_own(archives: Archives) -> None:
    form = {"content_type": "application/x-www-form-urlencoded", "Accept_Language": "de-CH"}

    answers = archives.ask("greeter", b"name=Ada", b"name=Bob", b"name=Cyd", **form)

    assert [answer.body.decode() for answer in answers] == [f"Grüezi {name} from cpu" for name in ("Ada", "Bob", "Cyd")]
    assert answers[0].headers["content-type"] == "text/plain; charset=utf-8"
    assert answers[0].headers["content-language"] == "de-CH"


def test_beside_an_overridden_stage_an_unreadable_row_fails_alone(archives: Archives) -> None:
    answers = archives.ask("argmax", b"[2.0, 1.0]", b'"no numbers"', b"[1.0, 2.0]", **JSON)

    assert [answer.status for answer in answers] == [200, 400, 200]
    assert answers[1].json["message"].startswith("The request is not an array of numbers")


def test_micro_batches_run_in_threads_and_come_back_in_order(archives: Archives) -> None:
    answers = archives.ask("micro", b"[1.0, 0.0]", b"[2.0, 0.0]", b"[3.0, 0.0]", **JSON)

    assert [answer.json["scores"] for answer in answers] == [[1, 0, 0], [2, 0, 0], [3, 0, 0]]
    assert sorted(answer.json["rows"] for answer in answers) == [1, 2, 2]
    assert all(answer.json["in_thread"] for answer in answers)


def test_metrics_are_lines_of_the_models_log(archives: Archives) -> None:
    answers = archives.ask("measuring", b"1", b"22", b"333")

    assert [answer.json for answer in answers] == [1, 2, 3]
    eventually(lambda: "Fullness" in archives.served.tsctl("logs", "measuring"), "the metrics are in the log")
    log = archives.served.tsctl("logs", "measuring")
    ids = {answer.headers["x-request-id"] for answer in answers}
    assert re.search(r"RowsSeen\.Count:3\|#ModelName:measuring,Kind:raw\|#type:COUNTER\|", log)
    assert (
        set(re.findall(r"BodySize\.Bytes:\d\|#Kind:raw,ModelName:measuring,Level:Model\|.*,([0-9a-f-]{36})", log))
        == ids
    )
    assert len(re.findall(r"BodyCount\.Count:1\|", log)) == 3
    assert "Fullness.Percent:100.0" in log
    assert re.search(r"ts_handler_preprocess\.Milliseconds:[\d.e-]+\|", log)


def test_each_request_of_a_batch_has_its_own_status(archives: Archives) -> None:
    answers = archives.ask("gatekeeper", b"friend", b"stranger", b"friend", content_type="text/plain")

    assert [answer.status for answer in answers] == [200, 403, 200]
    assert (answers[1].body, answers[1].headers["x-reason"]) == (b"Invalid response", "unknown")
    assert [answers[index].json["id"] for index in (0, 2)] == [
        answers[index].headers["x-request-id"] for index in (0, 2)
    ]
    assert sorted(answers[index].json["row"] for index in (0, 2)) != [0, 0]


def test_texts_are_classified_in_one_batch(archives: Archives) -> None:
    before = archives.served.describe("reviews")["tsctl"]["batching"]["sizes"].get("3", 0)

    answers = archives.ask("reviews", b"<b>GREAT</b>", b"bad!", b"good and great", content_type="text/plain")

    assert [max(answer.json, key=answer.json.__getitem__) for answer in answers] == ["right", "left", "left"]
    assert list(answers[0].json) == ["left", "right"]
    assert archives.served.describe("reviews")["tsctl"]["batching"]["sizes"]["3"] == before + 1


def test_the_environment_puts_every_model_into_an_envelope(idle: Served) -> None:
    idle.environment["TS_SERVICE_ENVELOPE"] = "kserve"
    idle.start()
    idle.register("echo", "--batch-size", "2", "--max-delay", "5000")

    with ThreadPoolExecutor(2) as clients:
        documents = [{"instances": [{"data": 1}, {"data": 2}]}, {"instances": [{"data": 3}]}]
        bodies = [json.dumps(document).encode() for document in documents]
        answers = list(clients.map(lambda body: idle.ask("/predictions/echo", body, **JSON), bodies))

    assert [[each["row"] for each in answer.json["predictions"]] for answer in answers] == [
        [{"data": {"int": 1}}, {"data": {"int": 2}}],
        [{"data": {"int": 3}}],
    ]
    assert [{each["id"] for each in answer.json["predictions"]} for answer in answers] == [
        {answer.headers["x-request-id"]} for answer in answers
    ]
