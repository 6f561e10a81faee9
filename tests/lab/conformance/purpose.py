"""Intended differences, with reasons. A defect of ours is never listed here.

A rule looks at both answers, so that nothing else can hide behind it. One for all cases says exactly what
differs; one for named cases says which two statuses stand against each other.
"""

import json
from collections.abc import Callable

from tests.lab.conformance.compare import MISSING, Difference, Purpose
from tests.lab.conformance.explains import (
    client_headers,
    described,
    differs,
    fewer_workers,
    message_begins,
    no_sequences,
    no_token,
    oip_error,
    own_key,
    queue_full,
    says_json,
    says_more,
    stands,
    stays_open,
    worker_died,
)


def purpose(
    name: str, reason: str, explains: Callable[[Difference], bool], *cases: str, always: bool = True
) -> Purpose:
    return Purpose(name, reason, explains, frozenset(cases), always)


PURPOSES: tuple[Purpose, ...] = (
    purpose(
        "errors keep the connection",
        "A status of 400 or above keeps the connection open, unless the body is unread.",
        stays_open,
    ),
    purpose("JSON says so", "What is encoded as JSON carries `application/json`.", says_json),
    purpose("errors say more", "An error says what happened, and names the request.", says_more),
    purpose("how a worker died", "The answer says how the worker died.", worker_died),
    purpose("no sequences", "The sentence leaves out sequences.", no_sequences),
    purpose("our own key", "A description ends with what only tsctl knows, under the key `tsctl`.", own_key),
    purpose(
        "errors of two protocols",
        "An error below `/v2` also has the member `error` of the Open Inference Protocol.",
        oip_error,
        "KServe v2: an unknown model", "KServe v2: an unknown verb",
    ),
    purpose(
        "readiness in KServe's first protocol",
        "A question of KServe's protocol is answered where KServe asks: on the address of predictions, too.",
        stands((404, 200)),
        "KServe v1: no verb",
    ),
    purpose(
        "the open inference protocol",
        "The Open Inference Protocol is always served; TorchServe serves it where its own setting asks for it.",
        stands((404, 200)),
        "KServe v2: ready, without the open inference protocol",
        "KServe v2: health, without the open inference protocol",
    ),
    purpose(
        "the client's headers",
        "The handler sees the headers that the client sent, not those of a body put together by the server's library.",
        client_headers,
        "GET runs the model too", "a chunked body is put together", "KServe v1: predict by GET",
        "customized: a class that knows nothing of describing",
        "a client that expects 100-continue gets its answer",
    ),
    purpose(
        "the client's request id",
        "A client's x-request-id is taken over, so that it can find its request again in the logs.",
        differs("header x-request-id", "<uuid>", "given-by-the-client-1"),
        "a client's x-request-id",
    ),
    purpose(
        "an own description",
        "The OpenAPI description is this server's own, of the routes that it has.",
        described,
        "an OPTIONS request to a model", "an OPTIONS request to the root", "the API description",
        "management: an OPTIONS request", "management: an OPTIONS request to a model",
        "a description of the API without a token",
    ),
    purpose(
        "a broken form",
        "A form that cannot be read is the client's mistake: 400, not 500 with the name of a Java class.",
        stands((500, 400)),
        "a form with a broken escape is refused", "a form field without a name is refused",
    ),
    purpose(
        "413 stays 413",
        "A handler's 413 reaches the client; TorchServe turns it into 507.",
        stands((507, 413)),
        "a PredictionException with 413",
    ),
    purpose(
        "sys.exit ends nothing",
        "`sys.exit` in a handler fails the request and not the worker.",
        stands((500, 503)),
        "a handler that calls sys.exit",
    ),
    purpose(
        "killed is 507",
        "A worker that is killed from outside is told as 507; TorchServe gives 507 or 500, whatever it notices first.",
        stands((500, 507)),
        "a worker that is killed",
        always=False,
    ),
    purpose(
        "a row is its value",
        "`BaseHandler.preprocess` takes the value of a row, `data` or `body`; TorchServe's fails on every request.",
        stands((503, 200)),
        "base_handler: a list of numbers", "base_handler: integers", "base_handler: a list under data",
    ),
    purpose(
        "every mode of image",
        "Grey, transparent and palette images are converted to RGB; TorchServe's handler fails on them.",
        stands((503, 200)),
        "image_classifier: a grey image", "image_classifier: an image with transparency",
        "image_classifier: an image with a palette",
    ),
    purpose(
        "unreadable rows",
        "What a built-in handler or envelope cannot read is the client's mistake: 400; its batch-mates are answered.",
        stands((503, 400)),
        "base_handler: what is no array of numbers", "image_classifier: bytes that are no image",
        "image_classifier: text that is no base64", "image_classifier: no body",
        "object_detector: bytes that are no image",
        "json: an object without instances", "json: a list", "json: what is no JSON",
        "kserve: an object without instances", "kserve: what is no JSON", "kservev2: no inputs",
        "kservev2: an input without a shape", "kservev2: a shape that does not fit", "kservev2: what is no JSON",
    ),
    purpose(
        "JSON without its content type",
        "An envelope reads JSON from bytes, too; TorchServe's `json` fails on them.",
        stands((503, 200)),
        "json: JSON that does not say so",
    ),
    purpose(
        "no instances",
        "No instances have no predictions; TorchServe's envelope fails on an empty list.",
        stands((503, 200)),
        "json: no instances",
    ),
    purpose(
        "importances fit their words",
        "An explanation has one importance for each word, and pair of words, that the model saw.",
        lambda difference: difference.where in ("body.importances", "body.words"),
        "text_classifier: an explanation",
    ),
    purpose(
        "metrics need no declaration",
        "What a handler measures is taken as it comes; TorchServe may fail for dimensions that it was not told of.",
        stands((503, 200)),
        "a handler that measures",
        always=False,
    ),
    purpose(
        "the whole path",
        "A route is the whole path: there is nothing below /ping.",
        stands((200, 404)),
        "ping with a further segment", "below /metrics",
    ),
    purpose(
        "what RFC 9112 forbids",
        "What RFC 9112 forbids is refused: a proxy in front might read it as another request.",
        stands((200, 400)),
        "an unknown version of HTTP", "no Host", "a lower-case method", "an invented method", "a negative length",
        "a length that is no number", "a length and chunks", "two lengths",
    ),
    purpose(
        "an absolute target",
        "RFC 9112 has every server understand a target with scheme and host.",
        stands((404, 200)),
        "an absolute target",
    ),
    purpose(
        "longer heads",
        "Targets and headers may be longer: 64 KiB.",
        stands((400, 200)),
        "a target of 5000 characters", "headers of 10 000 characters",
    ),
    purpose(
        "the client's wish",
        "A client that says `Connection: close`, or speaks HTTP/1.0, finds its connection closed.",
        stands((200, 200)),
        "HTTP/1.0", "Connection: close",
    ),
    purpose(
        "refused bodies",
        "The refusal says why, in JSON, and closes the connection, because the body is unread.",
        stands((413, 413), (417, 417)),
        "a body over the limit", "an expectation that is unknown", "max_request_size: a body above it",
    ),
    purpose(
        "one socket for both",
        "The control socket answers predictions and health too, so that one address does everything.",
        stands((404, 200)),
        "management: a prediction", "management: ping",
    ),
    purpose(
        "no workflows",
        "Workflows are not served; TorchServe has disabled registering them.",
        stands((200, 404), (404, 404)),
        "a workflow", "a workflow prediction",
    ),
    purpose(
        "no C++ runtime",
        "The runtime LSP is refused with its name.",
        stands((200, 400), (200, 404)),
        "the runtime LSP",
    ),
    purpose(
        "answers of any size",
        "An answer may be as large as its handler makes it; TorchServe kills the worker.",
        stands((500, 200)),
        "an answer of 7 MB",
    ),
    purpose(
        "batch-mates are answered",
        "What cannot be read fails its own request, and not the batch.",
        stands((503, 400), (503, 200)),
        "a batch with an image and with what is none",
    ),
    purpose(
        "-1 workers",
        "Less than no workers is refused with a sentence; TorchServe fails with a Java exception.",
        stands((500, 400)),
        "a minimum of -1",
    ),
    purpose(
        "numbers are read",
        "A parameter that is no number, or out of range, is refused with its value; TorchServe takes the default.",
        stands((200, 400), (200, 404)),
        "a minimum that is no number", "a limit that is no number", "a token that is no number",
        "with workers that are no number", "with a batch size that is no number", "with a delay that is no number",
        "with a batch size of 0", "with timeouts that are no numbers",
    ),
    purpose(
        "set-default is a PUT",
        "Asking for set-default with GET is not describing the default version.",
        stands((200, 404)),
        "set-default by GET",
    ),
    purpose(
        "the delay in JSON",
        "A delay that is not given is 100 ms; TorchServe stores -10000 for a JSON body.",
        differs("maxBatchDelay", -10000, 100),
        "by a JSON body without a delay",
    ),
    purpose(
        "no archives from elsewhere",
        "Archives come from the model store; an address is refused unless the allow-list, empty by default, holds it.",
        stands((200, 404), (400, 404)),
        "a scheme that is not known", "a remote archive that cannot be fetched", "a file address that is not there",
    ),
    purpose(
        "JSON that is no object",
        "A JSON body that is no object is the client's mistake: 400, not 500 with the name of a Java class.",
        stands((500, 400)),
        "a JSON body that is a list",
    ),
    purpose("a full queue", "A full queue says that it is full, and when to try again.", queue_full),
    purpose(
        "every request is answered",
        "A model that goes finishes what it has accepted; TorchServe kills the worker and forgets what waits.",
        stands((500, 200), (-1, 200)),
        "a model that is unregistered while it is asked", "a model that is scaled to none while it is asked",
        always=False,
    ),
    purpose(
        "archives are read",
        "An archive that cannot be read is refused by its own mistake; TorchServe takes one for an empty archive.",
        message_begins("Model name is not defined.", "The archive `junk.mar` is neither a zip nor a gzipped tar file."),
        "a .mar that is no zip",
    ),
    purpose(
        "a tar that is none",
        "A file that is no archive is refused with 400, not 500.",
        stands((500, 400)),
        "a tar that is none",
    ),
    purpose(
        "a manifest that is no JSON",
        "The sentence says that the manifest is no JSON, and where; TorchServe names a file that there is not.",
        message_begins("Failed to parse signature.json.", "The manifest is not JSON: "),
        "a manifest that is no JSON",
    ),
    purpose(
        "handlers are looked for",
        "A handler that the archive does not hold is found out at registering, before a worker is started.",
        stands((500, 400)),
        "a handler that is not in the archive",
    ),
    purpose(
        "nothing is left behind",
        "A synchronous registration that fails leaves nothing registered; in TorchServe it is a race.",
        stands((200, 404)),
        "a handler that fails to load", "a handler that runs out of memory while it loads",
        always=False,
    ),
    purpose(
        "configuration is read",
        "A model-config.yaml that is broken, or has a value of the wrong type, is refused with its key.",
        stands((200, 400), (500, 400), (200, 404)),
        "a model-config.yaml with values of the wrong type", "a model-config.yaml that is broken",
    ),
    purpose(
        "what is said at registering wins",
        "What a registration says wins over model-config.yaml, for workers and timeouts too.",
        fewer_workers,
        "workers, batch and timeouts from model-config.yaml",
        "parameters win over model-config.yaml, but not for workers and timeouts",
        "model-config.yaml wins over the defaults",
    ),
    purpose(
        "more is measured",
        "Counters begin at zero; every handler's times are measured, and histograms of ours are added.",
        lambda difference: difference.where.startswith("body.") and difference.their_value == MISSING,
        "predictions are counted by model and version", "latencies have the same labels", "the times of handlers",
        "all of them", "by POST", "the file's names of dimensions",
    ),
    purpose(
        "no names without values",
        "A metric that has no value is not named.",
        lambda difference: (
            difference.our_value == MISSING and difference.where.startswith("body.")
            and '"samples": {}' in json.dumps(difference.their_value)
        ),
        "all of them",
    ),
    purpose("401 and 403", "Without a token the answer is 401, with a wrong one 403, as RFC 9110 has it.", no_token),
    purpose(
        "probes need no token",
        "Load balancers ask for health, and have no token.",
        stands((400, 200)),
        "ping without a token",
    ),
    purpose(
        "who may register may predict",
        "The token of the commands is good for predictions, too.",
        stands((400, 200)),
        "a prediction: the token of commands",
    ),
    purpose(
        "a token is no header of the handler's",
        "A handler does not see the token of the daemon.",
        differs(".Authorization", "Bearer <inference token>", MISSING),
        "what a handler sees of the token",
    ),
)  # fmt: skip
