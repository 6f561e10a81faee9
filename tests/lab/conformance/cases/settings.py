"""Servers that are set otherwise: tokens, config.properties, and what is measured."""

from tests.lab.conformance.case import Case, Group, Step, ask, ask_json, case, manage, measured
from tests.lab.conformance.variants import CONFIGURED, DECLARED, METRICS, TOKENS

INFERENCE, MANAGEMENT = "Bearer <inference token>", "Bearer <management token>"
SHOWN = {
    "no token": "",
    "a wrong token": "Bearer wrong",
    "the token of predictions": INFERENCE,
    "the token of commands": MANAGEMENT,
    "a token without a scheme": "<inference token>",
    "a token of another scheme": "Basic <inference token>",
}


def shows(step: Step, header: str, name: str = "Authorization") -> Step:
    return step.with_header(name, header) if header else step


def each_token(what: str, step: Step, uses: str = "") -> list[Case]:
    return [case(f"{what}: {how}", shows(step, header), uses=uses) for how, header in SHOWN.items()]


SECURED = Group(
    "tokens",
    "Tokens",
    (
        *each_token("a prediction", ask("/predictions/entry"), uses="entry"),
        *each_token("a command", manage("GET", "/models")),
        case("a registration without a token", manage("POST", "/models?url=entry.mar&model_name=stranger"),
             shows(manage("GET", "/models"), MANAGEMENT)),
        case("a registration and its end, with the token",
             shows(manage("POST", "/models?url=entry.mar&model_name=mine"), MANAGEMENT),
             shows(manage("DELETE", "/models/mine"), MANAGEMENT)),
        case("the header's name in lower case", shows(ask("/predictions/entry"), INFERENCE, "authorization"),
             uses="entry"),
        case("ping without a token", ask("/ping", method="GET")),
        case("ping with the token", shows(ask("/ping", method="GET"), INFERENCE)),
        case("a description of the API without a token", ask("/api-description", method="GET")),
        case("a KServe prediction without a token", ask_json("/v1/models/entry:predict", {"instances": []}),
             uses="entry"),
        case("a route that is not there, without a token", ask("/nowhere", method="GET")),
        case("what a handler sees of the token", shows(ask("/predictions/shows"), INFERENCE), uses="shows"),
    ),
    variant=TOKENS,
)  # fmt: skip

CONFIGURATION = Group(
    "configuration",
    "config.properties",
    (
        case("a model that load_models names is served", manage("GET", "/models/entry", until='"READY"'),
             ask("/predictions/entry")),
        case("under the name that load_models gives it", manage("GET", "/models/second", until='"READY"'),
             ask("/predictions/second", b"x")),
        case("and no other", manage("GET", "/models")),
        case("decode_input_request=false: JSON stays bytes", ask_json("/predictions/second", {"a": 1})),
        case("decode_input_request=false: text stays bytes", ask("/predictions/second", "abc", kind="text/plain")),
        case("max_request_size: a body below it", ask("/predictions/entry", b"x" * 1900)),
        case("max_request_size: a body above it", ask("/predictions/entry", b"x" * 2100)),
        case("default_service_handler, and default_workers_per_model",
             manage("POST", "/models?url=no_handler.mar"), ask("/predictions/no_handler"),
             manage("GET", "/models/no_handler"), manage("DELETE", "/models/no_handler")),
        case("a registration wins over the defaults",
             manage("POST", "/models?url=entry.mar&model_name=other&initial_workers=0&response_timeout=5&batch_size=2"),
             manage("GET", "/models/other"), manage("DELETE", "/models/other")),
        case("model-config.yaml wins over the defaults", manage("POST", "/models?url=yaml.mar&initial_workers=0"),
             manage("GET", "/models/yaml"), manage("DELETE", "/models/yaml")),
    ),
    variant=CONFIGURED,
)  # fmt: skip

MEASURED = Group(
    "metrics",
    "Metrics",
    (
        case("predictions are counted by model and version", ask("/predictions/entry"), ask("/predictions/entry"),
             ask("/predictions/entry/1.0"), measured("ts_inference_requests_total"), uses="entry"),
        case("latencies have the same labels",
             measured("ts_inference_latency_microseconds", "ts_queue_latency_microseconds")),
        case("answers are counted by their class", ask("/predictions/nobody"),
             measured("Requests2XX", "Requests4XX")),
        case("server errors are counted", ask_json("/predictions/fails", {"do": "raise"}), measured("Requests5XX"),
             uses="fails"),
        case("the times of the last batch", measured("QueueTime", "WorkerThreadTime")),
        case("the time that workers took to load", measured("WorkerLoadTime")),
        case("the times of handlers", measured("HandlerTime", "PredictionTime")),
        case("a name that is not there", measured("nothing")),
        case("all of them", measured()),
        case("by POST", measured("ts_inference_requests_total", method="POST")),
        case("below /metrics", measured("ts_inference_requests_total", path="/metrics/more")),
        case("ping at the metrics address", measured(path="/ping")),
        case("a prediction at the metrics address", measured(path="/predictions/entry")),
    ),
    fresh=True,
    variant=METRICS,
)  # fmt: skip


def declares(what: str) -> Step:
    return ask_json("/predictions/declares", {"do": what})


DECLARING = Group(
    "declared",
    "metrics.yaml",
    (
        case("a handler finds a metric that only the file declares", declares("report"), measured("RequestBatchSize"),
             uses="declares"),
        case("a metric that a handler adds has the file's dimensions", declares("add"), measured("Took")),
        case("a metric that the file does not declare", measured("Undeclared")),
        case("values that do not fit their metric", declares("misfit"), measured("Rows")),
        case("a metric of another type", declares("another type")),
        case("a metric that nothing declares", declares("another name")),
        case("a metric that the handler declares", declares("declare"), measured("Made")),
        case("the server's metrics that the file declares", measured("Requests2XX", "PredictionTime")),
        case("and those that it does not", measured("QueueTime", "HandlerTime")),
        case("the file's names of dimensions", measured("ts_inference_requests_total")),
    ),
    fresh=True,
    variant=DECLARED,
)  # fmt: skip
