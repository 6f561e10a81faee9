"""KServe's SDK against a service of KServe with the models `doubles` and `mnist`: a program of its own.

python kserve_service.py PROTOCOL, one of v1, v2, grpc-v2; on the ports that KServe prescribes.
"""

import asyncio
import sys

sys.path.pop(0)  # this folder has a file with the name of the package

import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig

HTTP, GRPC = "http://127.0.0.1:8080", "127.0.0.1:8081"
MODELS = ("doubles", "mnist")


def request_of(model):
    made = InferInput("x", [3], "FP32")
    made.set_data_from_numpy(np.array([1, 2, 3], "f4"), binary_data=False)
    return InferRequest(model, [made], request_id="7")


async def main(protocol):
    client = InferenceRESTClient(RESTConfig(protocol="v1" if protocol == "v1" else "v2"))
    for model in MODELS:
        if protocol == "v1":
            assert await client.is_model_ready(HTTP, model)
            answer = await client.infer(HTTP, {"instances": [[1, 2], [3]]}, model_name=model)
            assert answer == {"predictions": [[2, 4], [6]]}, answer
            continue
        assert await client.is_server_ready(HTTP) and await client.is_model_ready(HTTP, model)
        if protocol == "v2":
            answer = await client.infer(HTTP, request_of(model), model_name=model)
        else:
            answer = await InferenceGRPCClient(GRPC).infer(request_of(model))
        assert (answer.id, answer.model_name) == ("7", model), answer
        assert answer.outputs[0].as_numpy().tolist() == [2, 4, 6], answer
    print("every call did as it should")


asyncio.run(main(sys.argv[1]))
