"""NVIDIA's tritonclient against a daemon with the models of tensor_models.py: a program of its own (test_clients.py).

python triton.py HTTP_HOST:PORT [GRPC_HOST:PORT MANAGEMENT_HOST:PORT TOKEN]
"""

import asyncio
import json
import queue
import sys

import numpy as np
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

MODEL = "triton"
DTYPES = ("bool", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8")


def refused(call, *arguments, **options):
    """Return the message with which a call is refused."""
    try:
        call(*arguments, **options)
    except InferenceServerException as error:
        return str(error)
    raise AssertionError(f"{call} was not refused")


def tensor(module, array, **options):
    made = module.InferInput("x", list(array.shape), np_to_triton_dtype(array.dtype))
    made.set_data_from_numpy(array, **options)
    return made


def arrays():
    """Yield an array of every datatype, and of several shapes."""
    for name in DTYPES:
        yield np.array([0, 1, 2 if name != "bool" else 1]).astype(name)
    yield np.array([b"a", "é".encode(), b""], dtype=object)
    yield np.zeros(0, "f4")
    yield np.arange(200_000, dtype="f4")  # more than goes in one frame


def model_of(array):
    return f"{MODEL}-{np_to_triton_dtype(array.dtype).lower()}"


def check_all(client, module, ways):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("triton-fp32")
    assert client.is_model_ready("triton-fp32", "1.0")
    assert not client.is_model_ready("nobody")
    for array in arrays():
        for way in ways:
            inputs = [tensor(module, array, **way)]
            outputs = [module.InferRequestedOutput("x", **({"binary_data": way["binary_data"]} if way else {}))]
            for wanted in (outputs, None):
                answer = client.infer(model_of(array), inputs, outputs=wanted, request_id="7")
                back = answer.as_numpy("x")
                if back.dtype == object:  # the client leaves texts that came in JSON as they are
                    back = np.array([each.encode() if isinstance(each, str) else each for each in back], dtype=object)
                assert back.dtype == array.dtype and (back == array).all(), (array.dtype, back)
            named = client.infer(model_of(array), inputs, model_version="1.0", parameters={"keep": False})
            assert (named.as_numpy("x") == array).all()
    wrong = tensor(module, np.zeros((2, 2), "f4"))
    assert "the model takes FP32 of shape [-1]" in refused(client.infer, "triton-fp32", [wrong])
    assert "nobody" in refused(client.infer, "nobody", [wrong])


def step(module):
    return [tensor(module, np.array([1], "i4"))]


def text(module, words):
    made = module.InferInput("text", [1], "BYTES")
    made.set_data_from_numpy(np.array([words.encode()], dtype=object))
    return made


def check_sequences(client, module):
    for name in (7, "seven"):
        counts = [
            client.infer(
                "steps", step(module), sequence_id=name, sequence_start=number == 0, sequence_end=number == 2
            ).as_numpy("n")
            for number in range(3)
        ]
        assert counts == [[1], [2], [3]], counts


def check_refusals(client, module):
    """What the protocols have and tsctl has not is refused by name."""
    array = np.arange(4, dtype="f4")
    there = module.InferInput("x", [4], "FP32")
    there.set_shared_memory("region", 16)
    back = module.InferRequestedOutput("x")
    back.set_shared_memory("region", 16)
    classes = module.InferRequestedOutput("x", class_count=2)
    assert "shared memory" in refused(client.infer, "triton-fp32", [there])
    for output, word in ((back, "shared memory"), (classes, "classification")):
        message = refused(client.infer, "triton-fp32", [tensor(module, array)], outputs=[output])
        assert f"tsctl does not serve {word}" in message, message
    for call, arguments, word in (
        (client.register_system_shared_memory, ("region", "/region", 16), "shared memory"),
        (client.get_cuda_shared_memory_status, (), "shared memory of GPUs"),
        (client.get_trace_settings, (), "Triton's trace settings"),
        (client.get_log_settings, (), "Triton's settings of its log"),
    ):
        message = refused(call, *arguments)
        assert f"tsctl does not serve {word}" in message, message
    assert "part of management" in refused(client.get_model_repository_index)
    assert "part of management" in refused(client.load_model, "triton-fp32")
    assert "in pieces" in refused(client.infer, "pieces", [text(module, "a b")])
    message = refused(client.infer, "lengths", [text(module, "a b")], parameters={"top": 5})
    assert "send it as an input" in message, message
    config = client.get_model_config("pieces")
    config = config if isinstance(config, dict) else client.get_model_config("pieces", as_json=True)["config"]
    assert config["model_transaction_policy"] == {"decoupled": True}, config


def check_http(address):
    client = tritonclient.http.InferenceServerClient(address, concurrency=4)
    check_sequences(client, tritonclient.http)
    check_refusals(client, tritonclient.http)
    check_all(client, tritonclient.http, ({}, {"binary_data": True}, {"binary_data": False}))
    assert client.get_server_metadata()["name"] == "tsctl"
    metadata = client.get_model_metadata("triton-fp32")
    assert metadata["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1]}], metadata
    assert client.get_model_config("triton-fp32")["max_batch_size"] == 0
    (statistics,) = client.get_inference_statistics("triton-fp32")["model_stats"]
    assert statistics["inference_stats"]["success"]["count"] >= 3
    array = np.arange(1000, dtype="f4")
    for coding in ("gzip", "deflate"):
        answer = client.infer("triton-fp32", [tensor(tritonclient.http, array)], request_compression_algorithm=coding)
        assert (answer.as_numpy("x") == array).all()
    waiting = [client.async_infer("triton-fp32", [tensor(tritonclient.http, array)]) for _ in range(8)]
    assert all((each.get_result().as_numpy("x") == array).all() for each in waiting)
    client.close()


async def check_http_aio(address):
    async with tritonclient.http.aio.InferenceServerClient(address) as client:
        assert await client.is_server_ready()
        array = np.arange(1000, dtype="f4")
        inputs = [tensor(tritonclient.http.aio, array)]
        answers = await asyncio.gather(*(client.infer("triton-fp32", inputs) for _ in range(8)))
        assert all((each.as_numpy("x") == array).all() for each in answers)


def check_grpc(address):
    client = tritonclient.grpc.InferenceServerClient(address)
    check_sequences(client, tritonclient.grpc)
    check_refusals(client, tritonclient.grpc)
    check_all(client, tritonclient.grpc, ({},))
    assert client.get_server_metadata().name == "tsctl"
    assert list(client.get_model_metadata("triton-fp32").inputs[0].shape) == [-1]
    (declared,) = client.get_model_config("triton-fp32", as_json=True)["config"]["input"]
    assert declared == {"name": "x", "data_type": "TYPE_FP32", "dims": ["-1"]}, declared
    (statistics,) = client.get_inference_statistics("triton-fp32").model_stats
    assert statistics.version == "1.0" and statistics.inference_stats.success.count >= 3
    assert len(client.get_inference_statistics().model_stats) > 1
    assert "nobody" in refused(client.get_inference_statistics, "nobody")
    array = np.arange(1000, dtype="f4")
    done = []
    for _ in range(8):
        client.async_infer("triton-fp32", [tensor(tritonclient.grpc, array)], lambda result, error: done.append(error))
    while len(done) < 8:
        pass
    assert done == [None] * 8
    check_stream(client, array)
    check_pieces(client)
    client.close()


def check_stream(client, array):
    came = queue.Queue()
    client.start_stream(lambda result, error: came.put((result, error)))
    for number in range(20):
        client.async_stream_infer("triton-fp32", [tensor(tritonclient.grpc, array + number)], request_id=str(number))
    for number in range(20):
        result, error = came.get(timeout=60)
        assert error is None and result.get_response().id == str(number)
        assert (result.as_numpy("x") == array + number).all()
    client.async_stream_infer("nobody", [tensor(tritonclient.grpc, array)], request_id="wrong")
    client.async_stream_infer("triton-fp32", [tensor(tritonclient.grpc, array)], request_id="right")
    result, error = came.get(timeout=60)
    assert result is None and "nobody" in str(error), (result, error)
    result, error = came.get(timeout=60)
    assert error is None and result.get_response().id == "right"
    client.stop_stream()


def check_pieces(client):
    """Answers in pieces end with `triton_final_response`, and sequences go over streams, too."""
    came = queue.Queue()
    client.start_stream(lambda result, error: came.put((result, error)))
    client.async_stream_infer("pieces", [text(tritonclient.grpc, "a bc d")], enable_empty_final_response=True)
    pieces, final = [], False
    while not final:
        result, error = came.get(timeout=60)
        assert error is None, error
        response = result.get_response()
        pieces += [each.name for each in response.outputs] and result.as_numpy("output").tolist()
        final = response.parameters["triton_final_response"].bool_param
    assert pieces == [b"a", b"bc", b"d"], pieces
    for number in range(3):
        client.async_stream_infer(
            "steps", step(tritonclient.grpc), sequence_id=9, sequence_start=number == 0, sequence_end=number == 2
        )
    counts = [came.get(timeout=60)[0].as_numpy("n").tolist() for _ in range(3)]
    assert counts == [[1], [2], [3]], counts
    client.stop_stream()


def check_management(address, token):
    client = tritonclient.grpc.InferenceServerClient(address)
    headers = {"authorization": f"Bearer {token}"}
    assert "token" in refused(client.get_model_repository_index).lower()
    models = {each.name: each.state for each in client.get_model_repository_index(headers=headers).models}
    assert models["triton-fp32"] == "READY", models
    message = refused(client.load_model, "triton-fp32", config=json.dumps({"max_batch_size": 4}), headers=headers)
    assert "the parameter `config`; tsctl does not serve it" in message, message
    client.unload_model("triton-fp32", headers=headers)
    assert not client.is_model_ready("triton-fp32", headers=headers)
    client.load_model("triton-fp32", headers=headers)
    assert client.is_model_ready("triton-fp32", headers=headers)
    client.close()


async def check_grpc_aio(address):
    async with tritonclient.grpc.aio.InferenceServerClient(address) as client:
        assert await client.is_model_ready("triton-fp32")
        array = np.arange(1000, dtype="f4")
        inputs = [tensor(tritonclient.grpc.aio, array)]
        answers = await asyncio.gather(*(client.infer("triton-fp32", inputs) for _ in range(8)))
        assert all((each.as_numpy("x") == array).all() for each in answers)


if __name__ == "__main__":
    http, *others = sys.argv[1:]
    check_http(http)
    asyncio.run(check_http_aio(http))
    if others:
        grpc, management, token = others
        check_grpc(grpc)
        asyncio.run(check_grpc_aio(grpc))
        check_management(management, token)
    print("every call did as it should")
