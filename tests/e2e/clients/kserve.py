"""KServe's SDK against a daemon with the models of tensor_models.py: a program of its own (test_clients.py).

python kserve.py HTTP_HOST:PORT [GRPC_HOST:PORT]
"""

import asyncio
import sys

sys.path.pop(0)  # this file has the name of the package

import httpx
import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferOutput, InferRequest, RESTConfig

MODEL = "kserve"
DATATYPES = {
    "BOOL": "bool", "UINT8": "u1", "UINT16": "u2", "UINT32": "u4", "UINT64": "u8", "INT8": "i1", "INT16": "i2",
    "INT32": "i4", "INT64": "i8", "FP16": "f2", "FP32": "f4", "FP64": "f8",
}  # fmt: skip


def request_of(datatype, array, *, binary):
    made = InferInput("x", list(array.shape), datatype)
    made.set_data_from_numpy(array, binary_data=binary)
    return InferRequest(f"{MODEL}-{datatype.lower()}", [made], request_id="7", parameters={"keep": False})


def cases():
    for datatype, name in DATATYPES.items():
        yield datatype, np.array([0, 1, 2 if datatype != "BOOL" else 1]).astype(name)
    yield "BYTES", np.array([b"a", "é".encode()], dtype=object)
    yield "FP32", np.arange(200_000, dtype="f4")


def check(answer, datatype, array, model):
    assert (answer.id, answer.model_name) == ("7", model), answer
    output = next(each for each in answer.outputs if each.name == "x")
    assert isinstance(output, InferOutput)
    back = output.as_numpy()
    if back.dtype == object:
        back = np.array([each.encode() if isinstance(each, str) else each for each in back], dtype=object)
    assert output.datatype == datatype and (back == array).all(), (datatype, back)


async def check_rest(address):
    url = f"http://{address}"
    client = InferenceRESTClient(RESTConfig(protocol="v2"))
    assert await client.is_server_live(url)
    assert await client.is_server_ready(url)
    assert await client.is_model_ready(url, f"{MODEL}-fp32")
    for datatype, array in cases():
        for binary in (False, True):
            if datatype == "FP16" and not binary:
                continue  # the SDK itself refuses it
            model = f"{MODEL}-{datatype.lower()}"
            check(await client.infer(url, request_of(datatype, array, binary=binary), model), datatype, array, model)
    status = 200
    try:
        await client.infer(url, request_of("FP32", np.zeros((2, 2), "f4"), binary=True), f"{MODEL}-fp32")
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
    assert status == 400, "a wrong shape was not refused"
    await client.close()


async def check_first_protocol(address):
    url = f"http://{address}"
    client = InferenceRESTClient(RESTConfig(protocol="v1"))
    assert await client.is_server_live(url)
    assert await client.is_model_ready(url, "lengths")
    answer = await client.infer(url, {"instances": ["ab", {"text": "abc", "top": 5}]}, "lengths")
    assert answer == {"predictions": [{"length": 2, "top": 3}, {"length": 3, "top": 5}]}, answer
    for document, reason in (
        ({"instances": ["ab"], "parameters": {"top": 5}}, "`parameters`: a request with `instances` has no other"),
        ({"instances": [{"text": "ab", "topp": 5}]}, "instance 1: `topp` is no part that the handler takes"),
    ):
        try:
            told = str(await client.infer(url, document, "lengths"))
        except httpx.HTTPStatusError as error:
            told = error.response.text
        assert reason in told, told
    await client.close()


async def check_grpc(address):
    client = InferenceGRPCClient(address)
    assert await client.is_server_live()
    assert await client.is_server_ready()
    assert await client.is_model_ready(f"{MODEL}-fp32")
    for datatype, array in cases():
        for binary in (False, True):
            if datatype == "FP16" and not binary:
                continue
            answer = await client.infer(request_of(datatype, array, binary=binary))
            check(answer, datatype, array, f"{MODEL}-{datatype.lower()}")
    await client.close()


if __name__ == "__main__":
    asyncio.run(check_rest(sys.argv[1]))
    asyncio.run(check_first_protocol(sys.argv[1]))
    if len(sys.argv) > 2:
        asyncio.run(check_grpc(sys.argv[2]))
    print("every call did as it should")
