"""Which of TorchServe's test files are run, which are not and why, and which cases stay different on purpose."""

import re
from typing import NamedTuple

HANDLERS = "torch_handler/unit_tests"  # the tests of its handlers, which ask no server

# Files that need no GPU, no gRPC and none of the large libraries.
FILES = (
    "test_url_path.py",
    "test_send_intermediate_prediction_response.py",
    "test_model_config.py",
    "test_model_custom_dependencies.py",
    "test_sm_mme_requirements.py",
    "test_onnx.py",
    "test_torch_compile.py",
    "test_model_control_mode.py",
    "test_snapshot.py",
    "test_startup_timeout.py",
    "test_handler_traceback_logging.py",
    "test_mnist_template.py",
    "test_metrics.py",
    "test_example_stateful_sequence_batching_http.py",
    "test_example_stateful_sequence_continuous_batching_http.py",
    "test_async_worker_comm.py",
    "test_parallelism.py",
    f"{HANDLERS}/test_base_handler.py",
    f"{HANDLERS}/test_envelopes.py",
    f"{HANDLERS}/test_mnist_kf.py",
)


class Different(NamedTuple):
    """Cases that stay different.

    Attributes:
        cases: a pattern of `FILE::NAME`.
        message: a pattern of the failure that the reason explains; another failure of the same case is a defect.
    """

    cases: str
    message: str
    why: str


# Files that are not run though they would need nothing else, and why.
NOT_RUN: dict[str, str] = {
    "test_auto_recover.py": "it reads the log without end for sentences of the Java server, which tsctl does not print",
}

_RESTORED = "what was registered is restored from the state directory, where unpacked archives are kept, too"
_NO_SWITCH = "who may command the daemon may register models: there is no second switch, `--enable-model-api`"
_AGAIN = (
    "metrics_location_var_snapshot_enabled", "log_location_and_metric_location_vars_snapshot_enabled",
    "metrics_location_var_snapshot_enabled_rdonly_dir",
)  # fmt: skip
_NO_SNAPSHOT = (
    "replace_mar_file_with_dummy", "restart_torchserve_with_last_snapshot_with_model_mar_removed",
    "restart_torchserve_with_one_of_model_mar_removed",
)  # fmt: skip

DIFFERENT: tuple[Different, ...] = (
    Different(
        r"test_example_stateful_sequence_continuous_batching_http\.py::test_infer_stateful_(idle|session)_timeout$",
        r"DID NOT RAISE",
        "a sequence that has had its time goes on in the worker that has its state, where there is room",
    ),
    Different(r"test_snapshot\.py::test_start_from_default$", r'\["models"\]\) == 0', _RESTORED),
    Different(
        rf"test_snapshot\.py::test_({'|'.join(_NO_SNAPSHOT)})$",
        r'snap\*\.cfg"\)\[[01]\][\s^]+E +IndexError',
        f"{_RESTORED}; registering it again changes nothing, so that no snapshot is written",
    ),
    Different(
        rf"test_metrics\.py::test_({'|'.join(_AGAIN)})$",
        r"assert 0 [>=]= 1[^\0]*config/\*snap\*\.cfg'",
        f"{_RESTORED}; registering it again changes nothing, so that no snapshot is written",
    ),
    Different(r"test_model_control_mode\.py::test_(register|delete)_model_failing$", r"assert 200 == 405", _NO_SWITCH),
    Different(
        r"test_model_control_mode\.py::test_(register|delete)_model_failing_https$",
        r"port=8081[^\0]*Connection refused",
        "the key of its certificate is one that OpenSSL finds too small",
    ),
    Different(
        r"test_handler_traceback_logging\.py::",
        r"assert any\(line in log for log in logs\)",
        "a model that cannot be loaded is not loaded again and again: `tsctl retry`; the traceback is logged once",
    ),
    Different(
        r"test_startup_timeout\.py::.*\[5\]",
        r"Timeout waiting for 'Backend worker error'",
        "the sentence of the log about a startup timeout is tsctl's own; the timeout itself holds",
    ),
)


# Failures that follow from what this machine lacks.
UNJUDGED: tuple[tuple[str, str], ...] = (
    (r"No module named '([\w.]+)'", "the library `{}` is not installed here"),
    (r"[Nn]o package metadata was found for (\w+)", "the library `{}` is not installed here"),
    (r"no NVIDIA driver|CUDA error|CUDA is not available|No CUDA GPUs|not compiled with CUDA", "a GPU is needed"),
    (r"urlopen|ProxyError|offline mode|torchserve\.pytorch\.org|Name or service not known", "the case downloads"),
    (r"linear\.onnx|onnx\.mar", "the case before it could not make its model"),
)


def unjudged(case: str, message: str) -> str:
    """Return why a case that failed with a message says nothing about tsctl; empty if it does."""
    for pattern, reason in UNJUDGED:
        if match := re.search(pattern, f"{case}\n{message}"):
            return reason.format(*match.groups())
    return ""


def why_different(case: str, message: str) -> str:
    """Return why a case, as `FILE::NAME`, fails with this message; empty if it should not."""
    fitting = (each.why for each in DIFFERENT if re.match(each.cases, case) and re.search(each.message, message))
    return next(fitting, "")
