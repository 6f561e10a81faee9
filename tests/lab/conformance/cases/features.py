"""Explanations, KServe, SageMaker, streaming, metrics and import names."""

from tests.lab.conformance.case import Case, Group, ask, ask_json, case, manage


def explains(name: str, target: str, document: object) -> Case:
    return case(name, ask_json(target, document), uses="explains")


EXPLAINING = Group(
    "explaining",
    "Explanations",
    (
        explains("a prediction of a handler that can explain", "/predictions/explains", [1, 2, 3]),
        explains("an explanation", "/explanations/explains", [1, 2, 3]),
        explains("an explanation of a version", "/explanations/explains/1.0", [1, 2, 3]),
        explains("an explanation with a target", "/explanations/explains", {"data": [1, 2, 3], "target": 1}),
        explains("an explanation by an unknown model", "/explanations/nobody", [1]),
        case("explanations without a model", ask("/explanations")),
        case("what the handler sees of an explanation", ask("/explanations/shows/1.0/a/b"), uses="shows"),
        case("a handler that cannot explain", ask_json("/explanations/linear", [1, 2, 3]), uses="linear"),
    ),
)  # fmt: skip


def kserve(name: str, target: str, method: str = "POST", document: object = None) -> Case:
    step = ask(target, method=method) if document is None else ask_json(target, document, method=method)
    return case(name, step, uses="shows")


def sagemaker(name: str, target: str, method: str = "POST", body: bytes = b"x") -> Case:
    return case(name, ask(target, body, method), uses="shows")


KSERVE = Group(
    "kserve",
    "KServe and SageMaker",
    (
        kserve("KServe v1: predict", "/v1/models/shows:predict", document={"instances": [1]}),
        kserve("KServe v1: predict by GET", "/v1/models/shows:predict", "GET"),
        kserve("KServe v1: explain", "/v1/models/shows:explain", document={"instances": [1]}),
        kserve("KServe v1: an unknown model", "/v1/models/nobody:predict"),
        kserve("KServe v1: an unknown verb", "/v1/models/shows:train"),
        kserve("KServe v1: no verb", "/v1/models/shows", "GET"),
        kserve("KServe v2: infer", "/v2/models/shows/infer", document={"inputs": []}),
        kserve("KServe v2: explain", "/v2/models/shows/explain", document={"inputs": []}),
        kserve("KServe v2: an unknown model", "/v2/models/nobody/infer"),
        kserve("KServe v2: an unknown verb", "/v2/models/shows/train"),
        kserve("KServe v2: ready, without the open inference protocol", "/v2/models/shows/ready", "GET"),
        kserve("KServe v2: health, without the open inference protocol", "/v2/health/ready", "GET"),
        sagemaker("SageMaker: invocations with a model's name", "/invocations?model_name=shows"),
        sagemaker("SageMaker: invocations with a parameter", "/invocations?model_name=shows&a=1"),
        sagemaker("SageMaker: invocations of an unknown model", "/invocations?model_name=nobody"),
        sagemaker("SageMaker: invocations without a name", "/invocations"),
        sagemaker("SageMaker: invoke", "/models/shows/invoke"),
        sagemaker("SageMaker: invoke with a parameter", "/models/shows/invoke?a=1"),
        sagemaker("SageMaker: invoke an unknown model", "/models/nobody/invoke"),
        case("SageMaker: a model's name in a form", ask(
            "/invocations", "model_name=shows&a=1", kind="application/x-www-form-urlencoded"), uses="shows"),
    ),
)  # fmt: skip


def describes(name: str, model: str) -> Case:
    step = manage("GET", f"/models/{model}?customized=true")
    return case(f"customized: {name}", step, uses=model)


def streams(name: str, body: bytes) -> Case:
    return case(name, ask("/predictions/streams", body), uses="streams")


FEATURES = Group(
    "features",
    "Streaming, metrics, names and batches",
    (
        streams("three pieces and the end", b"3"),
        streams("one piece and the end", b"1"),
        streams("no piece, only the end", b"0"),
        streams("a handler that fails before its first piece", b"many"),
        case("a handler that measures", ask("/predictions/measures"), uses="measures"),
        case("every import name that users use", ask("/predictions/names"), uses="names"),
        case("MicroBatching", ask_json("/predictions/micro", [1, 2, 3]), uses="micro"),
        describes("a handler that describes itself", "describes"),
        describes("a function that knows nothing of describing", "entry"),
        describes("a class that knows nothing of describing", "shows"),
        case("customized: a model without workers", manage("POST", "/models?url=entry.mar&model_name=idle"),
             manage("GET", "/models/idle?customized=true"), manage("DELETE", "/models/idle")),
        case("a batch waits for company no longer than its delay", ask("/predictions/batched", b"0"), uses="batched"),
        case("ping while a model has no workers", manage("POST", "/models?url=entry.mar&model_name=idle"),
             ask("/ping", method="GET"), manage("DELETE", "/models/idle")),
    ),
)  # fmt: skip
