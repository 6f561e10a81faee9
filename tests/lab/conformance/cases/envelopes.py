"""Request envelopes, chosen by `service_envelope`."""

from tests.lab.conformance.case import Case, Group, Step, ask, ask_json, case
from tests.lab.conformance.cases.bodies import PARTS, TEXT_FILE, parts
from tests.lab.conformance.variants import ENVELOPES


def group(envelope: str, title: str, *cases: Case) -> Group:
    return Group(f"envelope_{envelope}", title, cases, variant=ENVELOPES[envelope])


def opens(envelope: str, name: str, step: Step, model: str = "plain") -> Case:
    return case(f"{envelope}: {name}", step, uses=model)


def plain(envelope: str, name: str, document: object) -> Case:
    return opens(envelope, name, ask_json("/predictions/plain", document))


def form(kind: str, content: bytes) -> Step:
    return ask("/predictions/plain", parts((TEXT_FILE, kind, content)), kind=PARTS)


BODY = group(
    "body",
    "The envelope body",
    opens("body", "bytes", ask("/predictions/plain", b"abc")),
    opens("body", "text", ask("/predictions/plain", "abc", kind="text/plain")),
    opens("body", "no body", ask("/predictions/plain")),
    opens("body", "a file called data", form("text/plain", b"abc")),
    plain("body", "a JSON list", [1, 2]),
    plain("body", "a JSON object", {"a": 1}),
    opens("body", "base_handler", ask_json("/predictions/linear", [1.0, 2.0, 3.0]), model="linear"),
)

JSON = group(
    "json",
    "The envelope json",
    plain("json", "an instance", {"instances": [1]}),
    plain("json", "instances of all types", {"instances": [1, 2.5, "a", None, True, [1], {"a": 1}]}),
    plain("json", "an instance in base64", {"instances": [{"b64": "YWJj"}, {"b64": "eA=="}]}),
    plain("json", "an instance with a part in base64", {"instances": [{"a": {"b64": "YWJj"}, "b": 1}]}),
    opens("json", "JSON that does not say so", ask("/predictions/plain", b'{"instances": [1]}')),
    plain("json", "no instances", {"instances": []}),
    plain("json", "an object without instances", {"a": 1}),
    plain("json", "a list", [1]),
    opens("json", "what is no JSON", ask("/predictions/plain", b"{", kind="application/json")),
    opens("json", "a file called data", form("application/json", b'{"instances": [1]}')),
    opens("json", "base_handler", ask_json("/predictions/linear", {"instances": [[1, 2, 3], [0, 0.5, 1]]}),
          model="linear"),
)  # fmt: skip

KSERVE = group(
    "kserve",
    "The envelope kserve",
    plain("kserve", "an instance", {"instances": [1]}),
    opens("kserve", "an instance, as bytes", ask("/predictions/plain", b'{"instances": [1]}')),
    plain("kserve", "an object without instances", {"a": 1}),
    opens("kserve", "what is no JSON", ask("/predictions/plain", b"{")),
    opens("kserve", "at the route of KServe", ask_json("/v1/models/plain:predict", {"instances": ["a"]})),
    opens("kserve", "base_handler", ask_json("/v1/models/linear:predict", {"instances": [[1, 2, 3]]}), model="linear"),
    opens("kserve", "an explanation", ask_json("/v1/models/plain:explain", {"instances": ["a"]})),
)


def tensor(name: str, shape: list[int], datatype: str, data: list[object]) -> dict[str, object]:
    return {"name": name, "shape": shape, "datatype": datatype, "data": data}


def tensors(name: str, document: object, target: str = "/v2/models/sums/infer") -> Case:
    return opens("kservev2", name, ask_json(target, document), model="sums")


NUMBERS, TEXT = tensor("input-0", [2, 2], "FP32", [1.5, 2.5, 3.0, 4.0]), tensor("text", [1], "BYTES", ["abc"])

KSERVEV2 = group(
    "kservev2",
    "The envelope kservev2",
    tensors("a tensor of floats", {"inputs": [NUMBERS]}),
    tensors("a tensor of integers", {"inputs": [tensor("n", [3], "INT64", [1, 2, 3])]}),
    tensors("a text", {"inputs": [TEXT]}),
    tensors("two tensors", {"inputs": [NUMBERS, tensor("second", [1], "INT32", [7])]}),
    tensors("an id", {"id": "given-by-the-client", "inputs": [NUMBERS]}),
    tensors("an empty id", {"id": " ", "inputs": [NUMBERS]}),
    tensors("at the route of TorchServe", {"inputs": [NUMBERS]}, "/predictions/sums"),
    tensors("no inputs", {}),
    tensors("an input without a shape", {"inputs": [{"name": "a", "datatype": "FP32", "data": [1]}]}),
    tensors("a shape that does not fit", {"inputs": [tensor("a", [3], "FP32", [1.0])]}),
    opens("kservev2", "bytes", ask("/v2/models/sums/infer", b'{"inputs": [%s]}' % (
        b'{"name": "a", "shape": [2], "datatype": "FP64", "data": [1.0, 2.0]}')), model="sums"),
    opens("kservev2", "what is no JSON", ask("/v2/models/sums/infer", b"{"), model="sums"),
)  # fmt: skip
