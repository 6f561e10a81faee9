"""Inference requests in tensors: checked before the queue, handed to the worker, and answered as the client asks."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tsctl.daemon.api.tensors.answers import parse_answer
from tsctl.daemon.core.job import Job, Param, Reply
from tsctl.daemon.extensions.sequences.marks import SequenceMark, read_mark
from tsctl.handlers.tensor_heads import ElementHeads, InferHead, TensorHead, WantedTensor
from tsctl.handlers.wire import Declared, Input

DECLARED = """
inputs: [{name: a, datatype: INT32, shape: [-1]}, {name: b, datatype: BYTES, shape: [1], optional: true}]
outputs: [{name: o, datatype: INT32, shape: [-1]}]
"""
INFER = "/v2/models/m/infer"
A = {"name": "a", "datatype": "INT32", "shape": [2], "data": [1, -1]}
PACKED = struct.pack("<2i", 1, -1)


def written(*inputs: Any, **more: Any) -> bytes:
    return json.dumps({"inputs": inputs, **more}).encode()


def last_job(house: House) -> Job:
    return house.engine.workers[-1].batches[-1].jobs[-1]


async def declared(root: Path, config: str = DECLARED) -> House:
    house = House(root)
    await house.serve("m", config=config)
    return house


async def test_tensors_reach_the_worker_as_bytes_with_their_head(tmp_path: Path) -> None:
    house = await declared(tmp_path)
    body = written(A, id="7", parameters={"k": 1}, outputs=[{"name": "o", "parameters": {"binary_data": True}}])

    assert (await house.ask("POST", INFER, body)).status == 200

    job = last_job(house)
    assert list(job.params) == [Param("a", "", PACKED)]
    assert job.infer == InferHead("7", {"k": 1}, [TensorHead("a", "INT32", [2])], [WantedTensor("o", True)], False)
    assert ("explain", "False") in job.headers
    assert job.size == 8


async def test_binary_tensors_reach_the_worker_as_they_came(tmp_path: Path) -> None:
    house = await declared(tmp_path)
    head = written({"name": "a", "datatype": "INT32", "shape": [2], "parameters": {"binary_data_size": 8}})

    await house.ask("POST", INFER, head + PACKED, f"Inference-Header-Content-Length: {len(head)}")

    assert list(last_job(house).params) == [Param("a", "", PACKED)]


@pytest.mark.parametrize(
    ("body", "header", "reason"),
    [
        (written(), "", "Input a is missing"),
        (written(A | {"datatype": "INT64"}), "", "Input a is INT64 of shape [2]; the model takes INT32"),
        (written(A | {"shape": [3]}), "", "2 elements for input a"),
        (written(A, outputs=[{"name": "p"}]), "", "Unknown output: p; the model returns o"),
        (b"{", "", "The body is no inference request in JSON"),
        (written(A), "Inference-Header-Content-Length: x", "Inference-Header-Content-Length is `x`"),
        (written(A), "Inference-Header-Content-Length: 100000", "is said to have 100000 bytes"),
    ],
)
async def test_what_is_not_as_declared_disturbs_no_worker(
    tmp_path: Path, body: bytes, header: str, reason: str
) -> None:
    house = await declared(tmp_path)

    status, document = await house.tell("POST", INFER, body, header or "Accept: */*")

    assert (status, document["code"], document["type"]) == (400, 400, "BadRequestException")
    assert reason in document["error"] == document["message"]
    assert not house.engine.workers[-1].batches
    assert house.registry.find("m").metrics.codes == {400: 1}


async def test_the_workers_answer_is_passed_on(tmp_path: Path) -> None:
    house = await declared(tmp_path)
    sent = Reply(200, b"{}bytes", headers=[("Content-Type", "application/octet-stream"), ("X-Y", "z")])
    house.engine.answer = lambda job: sent

    answer = await house.ask("POST", INFER, written(A))

    assert (answer.status, answer.body, answer.headers["x-y"]) == (200, b"{}bytes", "z")


async def test_other_routes_of_a_declared_model_are_as_ever(tmp_path: Path) -> None:
    house = await declared(tmp_path)

    await house.ask("POST", "/predictions/m", b"cat")

    assert (list(last_job(house).params), last_job(house).infer) == ([Param("body", "", b"cat")], None)


async def test_a_model_that_declares_nothing_gets_binary_tensors_as_json_and_answers_with_bytes(tmp_path: Path) -> None:
    house = await declared(tmp_path, config="")
    output = {"name": "o", "datatype": "INT32", "shape": [1], "data": [5]}
    house.engine.answer = lambda job: Reply(200, json.dumps({"id": "7", "outputs": [output]}).encode())
    head = written(
        {"name": "a", "datatype": "INT32", "shape": [2], "parameters": {"binary_data_size": 8}},
        parameters={"binary_data_output": True},
    )

    answer = await house.ask("POST", INFER, head + PACKED, f"Inference-Header-Content-Length: {len(head)}")

    job = last_job(house)
    described = written({"name": "a", "datatype": "INT32", "shape": [2]})
    assert [(each.name, each.content_type) for each in job.params] == [("body", "application/json")] * 2
    assert (json.loads(bytes(job.params[0].value)), job.params[1].value) == (json.loads(described), PACKED)
    assert job.infer == ElementHeads([None, TensorHead("a", "INT32", [2])], document=True, binary=True)
    read = parse_answer(answer.body, int(answer.headers["inference-header-content-length"]))
    assert (read.id, read.outputs[0].data) == ("7", struct.pack("<i", 5))


@pytest.mark.parametrize(
    ("parameters", "sent"),
    [
        ({}, Reply(200, b'{"outputs": [{"name": "o", "more": 1}]}', headers=[("Content-Type", "application/json")])),
        ({"binary_data_output": True}, Reply(200, b"{}1234", headers=[("Inference-Header-Content-Length", "2")])),
    ],
    ids=["JSON", "bytes"],
)
async def test_an_answer_that_is_as_asked_is_not_read(tmp_path: Path, parameters: Any, sent: Reply) -> None:
    house = await declared(tmp_path, config="")
    house.engine.answer = lambda job: sent
    tensor = {"name": "a", "datatype": "INT32", "shape": [2], "parameters": {"binary_data_size": 8}}
    head = written(tensor, parameters=parameters)

    answer = await house.ask("POST", INFER, head + PACKED, f"Inference-Header-Content-Length: {len(head)}")

    assert answer.body == sent.body


async def test_an_answer_that_is_none_of_the_protocol_is_passed_on(tmp_path: Path) -> None:
    house = await declared(tmp_path, config="")
    house.engine.answer = lambda job: Reply(200, b'{"cat": 0.9}')

    answer = await house.ask("POST", INFER, written(A, parameters={"binary_data_output": True}))

    assert (answer.status, answer.body) == (200, b'{"cat": 0.9}')


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(Reply(503, b"no", error="InternalServerException"), 500, id="a handler raised"),
        pytest.param(Reply(503, b"no", error="ServiceUnavailableException"), 503, id="no room: try again"),
        pytest.param(Reply(507, b"no", error="InternalServerException"), 507, id="no memory"),
    ],
)
@pytest.mark.parametrize("config", ["", DECLARED], ids=["plain", "declared"])
async def test_proxies_are_told_which_errors_are_worth_another_try(
    tmp_path: Path, reply: Reply, expected: int, config: str
) -> None:
    house = await declared(tmp_path, config=config)
    house.engine.answer = lambda job: reply

    for parameters in ({}, {"binary_data_output": True}):
        status, document = await house.tell("POST", INFER, written(A, parameters=parameters))
        assert (status, document["code"], document["error"]) == (expected, expected, "no")

    assert (await house.ask("POST", "/predictions/m", b"cat")).status == reply.status  # as TorchServe's


async def test_a_generator_is_refused_before_it_runs(tmp_path: Path) -> None:
    house = House(tmp_path)
    model = await house.serve("m")
    model.learn(Declared([Input("text", "text")], batches=False, streams=True), ())

    for target in (INFER, "/v2/models/m/versions/1.0/infer"):
        status, document = await house.tell(
            "POST", target, written({"name": "text", "datatype": "BYTES", "shape": [1], "data": ["x"]})
        )
        assert (status, document["type"]) == (501, "NotServedException")
        assert document["error"].startswith("Model m answers in pieces, and this route takes one answer: ")

    assert not house.engine.workers[-1].batches
    _, config = await house.tell("GET", "/v2/models/m/config")
    assert config["model_transaction_policy"] == {"decoupled": True}


@pytest.mark.parametrize("config", ["", DECLARED], ids=["plain", "declared"])
async def test_a_handler_that_turns_out_to_answer_in_pieces_is_told_about(tmp_path: Path, config: str) -> None:
    house = await declared(tmp_path, config=config)
    house.engine.batch_time = lambda size: 10.0
    peer = house.send("POST", INFER, written(A))
    exchange = house.exchanges[-1]
    await house.until(lambda: house.engine.workers[-1].batches)

    house.engine.workers[-1].stream(b"a piece")
    await house.until(lambda: exchange.done)
    house.clock.advance(10.0)

    (answer,) = peer.answers
    assert answer.status == 501
    assert "answers in pieces" in json.loads(answer.body)["error"]
    _, told = await house.tell("GET", "/v2/models/m/config")
    assert told["model_transaction_policy"] == {"decoupled": False}


TYPED = Declared([Input("text", "text"), Input("scores", "array")], batches=False)


async def typed(root: Path, config: str = "") -> House:
    house = House(root)
    model = await house.serve("m", config=config)
    model.learn(TYPED, ())
    return house


async def test_the_arguments_of_a_typed_handler_are_its_inputs(tmp_path: Path) -> None:
    house = await typed(tmp_path)
    house.engine.answer = lambda job: Reply(200, b'{"label": "x"}', headers=[("Content-Type", "application/json")])
    text = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a text"]}
    scores = {"name": "scores", "datatype": "FP32", "shape": [1, 2], "data": [1.5, 2]}

    status, document = await house.tell("POST", INFER, written(text, scores, id="7"))

    assert list(last_job(house).params) == [
        Param("text", "", b"a text"), Param("scores", "application/json", struct.pack("<2f", 1.5, 2.0)),
    ]  # fmt: skip
    assert last_job(house).infer == ElementHeads([None, TensorHead("scores", "FP32", [1, 2])])
    assert (status, document) == (
        200,
        {
            "model_name": "m",
            "model_version": "1.0",
            "id": "7",
            "outputs": [{"name": "output", "datatype": "BYTES", "shape": [1], "data": ['{"label": "x"}']}],
        },
    )


async def test_a_request_of_texts_alone_has_no_head(tmp_path: Path) -> None:
    house = await typed(tmp_path)

    await house.ask("POST", INFER, written({"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a text"]}))

    assert (list(last_job(house).params), last_job(house).infer) == ([Param("text", "", b"a text")], None)


async def test_the_metadata_of_a_typed_handler_names_its_arguments(tmp_path: Path) -> None:
    house = await typed(tmp_path)

    _, document = await house.tell("GET", "/v2/models/m")

    assert document["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [1]}]
    assert document["outputs"] == [{"name": "output", "datatype": "BYTES", "shape": [1]}]


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        ({"name": "no", "datatype": "BYTES", "shape": [1], "data": ["x"]},
         "Unknown input: no; the model takes text"),
        ({"name": "text", "datatype": "BYTES", "shape": [2], "data": ["x", "y"]}, "is BYTES of shape [2]; the model"),
        ({"name": "text", "datatype": "INT8", "shape": [1], "data": [1]}, "The input text is INT8 of shape [1]"),
    ],
)  # fmt: skip
async def test_what_is_no_argument_is_refused(tmp_path: Path, tensor: Any, reason: str) -> None:
    house = await typed(tmp_path)

    status, document = await house.tell("POST", INFER, written(tensor))

    assert status == 400
    assert reason in document["error"]


async def test_the_archive_may_declare_the_arguments_of_a_typed_handler(tmp_path: Path) -> None:
    config = """
inputs: [{name: scores, datatype: FP32, shape: [1, 2]}, {name: text, datatype: BYTES, shape: [1], optional: true}]
outputs: [{name: label, datatype: BYTES, shape: [1]}]
"""
    house = await typed(tmp_path, config)
    house.engine.answer = lambda job: Reply(200, b"x")
    scores = {"name": "scores", "datatype": "FP32", "shape": [1, 2], "data": [1.5, 2]}

    refused = await house.tell("POST", INFER, written(scores | {"shape": [2]}))
    status, document = await house.tell("POST", INFER, written(scores))

    assert refused[0] == 400 and "the model takes FP32 of shape [1, 2]" in refused[1]["error"]
    assert list(last_job(house).params) == [Param("scores", "application/json", struct.pack("<2f", 1.5, 2.0))]
    assert (status, document["outputs"][0]["name"], document["outputs"][0]["data"]) == (200, "label", ["x"])


async def test_an_image_as_answer_is_sent_as_bytes_only(tmp_path: Path) -> None:
    house = await typed(tmp_path)
    house.engine.answer = lambda job: Reply(200, b"\xff\xd8", headers=[("Content-Type", "image/jpeg")])
    text = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["x"]}

    refused = await house.tell("POST", INFER, written(text))
    answer = await house.ask("POST", INFER, written(text, parameters={"binary_data_output": True}))

    assert refused[0] == 500 and "use binary data" in refused[1]["error"]
    assert answer.body.endswith(b"\x02\0\0\0\xff\xd8")
    assert answer.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (written(A, output=[]), "output"),
        (written(A | {"dtype": "INT32"}), "dtype"),
        (written(A, outputs=[{"name": "o", "classification": 3}]), "classification"),
        (written(A | {"data": [1] * 10_000, "shape": [10_000]}, output=[]), "output"),
        (written(A | {"data": [1] * 10_000, "shape": [10_000], "dtype": 1}), "dtype"),
    ],
    ids=["of the request", "of an input", "of an output", "of a large request", "of a large input"],
)
async def test_a_member_that_the_protocol_does_not_have_is_refused_by_name(
    tmp_path: Path, body: bytes, named: str
) -> None:
    house = House(tmp_path, max_body=100_000)
    await house.serve("m", config=DECLARED)

    status, document = await house.tell("POST", INFER, body)

    assert status == 400
    assert f"unknown field `{named}`" in document["error"]
    assert not house.engine.workers[-1].batches


async def test_what_kserves_client_sends_beside_is_taken(tmp_path: Path) -> None:
    house = await declared(tmp_path)

    assert (await house.ask("POST", INFER, written(A, id=None, model_name="m", model_version=None))).status == 200


async def test_a_parameter_that_a_typed_handler_does_not_see_is_refused(tmp_path: Path) -> None:
    house = await typed(tmp_path)
    text = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["x"]}

    told = [
        await house.tell("POST", INFER, written(text, parameters=parameters))
        for parameters in ({"top": 5}, {"scores": 1}, {"priority": 0, "binary_data_output": False})
    ]

    assert [status for status, _ in told] == [400, 400, 200]
    assert told[0][1]["error"] == (
        "The parameter `top` of the request has no effect: the handler takes no parameters, its inputs are text,"
        " scores."
    )
    assert "send it as an input" in told[1][1]["error"]


@pytest.mark.parametrize("verb", ["infer", "explain"])
@pytest.mark.parametrize("config", ["", DECLARED], ids=["plain", "declared"])
async def test_a_query_is_refused_by_name(tmp_path: Path, verb: str, config: str) -> None:
    house = await declared(tmp_path, config)

    status, document = await house.tell("POST", f"/v2/models/m/{verb}?top=5", written(A))

    assert (status, document["error"]) == (400, "Unknown parameter `top` in the query; this route takes none.")
    assert house.registry.find("m").metrics.codes == {400: 1}


async def test_the_parameters_of_a_sequence_are_its_headers(tmp_path: Path) -> None:
    house = await declared(tmp_path, DECLARED + "sequenceBatching: true\nmaxNumSequence: 4\n")
    places = [
        {"sequence_id": 7, "sequence_start": True},
        {"sequence_id": "7"},
        {"sequence_id": 7, "sequence_end": True},
    ]

    for place in places:
        assert (await house.ask("POST", INFER, written(A, parameters=place))).status == 200

    jobs = [job for batch in house.engine.workers[-1].batches for job in batch.jobs]
    assert [read_mark(job.headers) for job in jobs] == [
        SequenceMark("7", start=True, end=False, made=False),
        SequenceMark("7", start=False, end=False, made=False),
        SequenceMark("7", start=False, end=True, made=False),
    ]


async def test_the_headers_of_sequences_have_the_names_that_an_operator_chose(tmp_path: Path) -> None:
    house = House(tmp_path, sequence_id_header="X-Dialogue")
    await house.serve("m", config=DECLARED)

    await house.ask("POST", INFER, written(A, parameters={"sequence_id": 7}))

    assert ("X-Dialogue", "7") in last_job(house).headers


async def test_the_number_0_is_no_sequence(tmp_path: Path) -> None:
    house = await declared(tmp_path)

    await house.ask("POST", INFER, written(A, parameters={"sequence_id": 0}))

    assert not [name for name, _ in last_job(house).headers if "sequence" in name]


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"sequence_id": True}, "`sequence_id` of the request is True; expected a text or a whole number"),
        ({"sequence_id": 1.5}, "`sequence_id` of the request is 1.5; expected a text or a whole number"),
        ({"sequence_id": 1, "sequence_start": "true"}, "`sequence_start` of the request is true; expected true or"),
        ({"priority": 1}, "`priority` of the request is 1; tsctl does not serve it: send the header `x-request-prio"),
        ({"timeout": 5000}, "`timeout` of the request is 5000; tsctl does not serve it: send the header `x-request-d"),
    ],
)
async def test_a_parameter_of_the_protocol_that_is_not_served_is_refused_by_its_name(
    tmp_path: Path, parameters: Any, reason: str
) -> None:
    house = await declared(tmp_path)

    status, document = await house.tell("POST", INFER, written(A, parameters=parameters))

    assert status == 400
    assert reason in document["error"]


async def test_a_handlers_own_parameters_may_have_names_of_the_protocols(tmp_path: Path) -> None:
    house = await declared(tmp_path)

    told = await house.ask("POST", INFER, written(A, parameters={"priority": "high", "timeout": 0}))

    assert told.status == 200
