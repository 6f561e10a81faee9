"""What the core knows of the protocol's paths before their routes are asked."""

from tests.kit.said import said_in
from tsctl.daemon.api.inference.openapi import describe_api, describe_model
from tsctl.daemon.api.inference.paths import facts_of, model_named, predicts
from tsctl.daemon.http.messages import error_body
from tsctl.daemon.model_settings.declarations import DeclaredTensor


@said_in("paths.txt")
def test_a_path_names_its_model_and_whether_that_runs(given: str) -> str:
    path = given.split("/")
    facts = facts_of(path)
    assert facts is None or (predicts(path), model_named(path)) == (not facts.manages, facts.model)
    return f"{facts}"


def test_an_error_is_in_the_words_of_the_protocol_and_of_torchserve() -> None:
    told = error_body(404, "Kind", "no model", "/v2/models/m")

    assert told == {"error": "no model"} | error_body(404, "Kind", "no model", "/predictions/m")
    assert "error" not in error_body(404, "Kind", "no model", "/v2x")


def test_the_description_has_its_routes_and_those_of_a_model_that_declares_tensors() -> None:
    paths = describe_api()["paths"]
    declared = [DeclaredTensor("a", "BOOL", (-1, 2))]

    assert paths["/v2/health/live"].keys() == paths["/v2/models/{model_name}/config"].keys() == {"get"}
    assert paths["/v2/models/{model_name}/infer"].keys() == {"post"}
    assert "/v2/models/m/infer" not in describe_model("m")["paths"]
    told = describe_model("m", declared, declared)["paths"]["/v2/models/m/infer"]["post"]
    example = told["requestBody"]["content"]["application/json"]["example"]["inputs"][0]
    assert (example["shape"], example["data"]) == ([1, 2], [False] * 2)
    assert "outputs" in told["responses"]["200"]["content"]["application/json"]["example"]
