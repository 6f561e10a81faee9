"""NVIDIA's tritonclient against a service of KServe with the model `doubles`: a program of its own.

python triton_service.py, on the ports that KServe prescribes.
"""

import numpy as np
import tritonclient.grpc
import tritonclient.http

for module, address in ((tritonclient.http, "127.0.0.1:8080"), (tritonclient.grpc, "127.0.0.1:8081")):
    client = module.InferenceServerClient(address)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("doubles")
    made = module.InferInput("x", [3], "FP32")
    made.set_data_from_numpy(
        np.array([1, 2, 3], "f4"), **({"binary_data": False} if module is tritonclient.http else {})
    )
    wanted = [tritonclient.http.InferRequestedOutput("x", binary_data=False)] if module is tritonclient.http else None
    answer = client.infer("doubles", [made], outputs=wanted)
    assert answer.as_numpy("x").tolist() == [2, 4, 6], answer.get_response()
print("every call did as it should")
