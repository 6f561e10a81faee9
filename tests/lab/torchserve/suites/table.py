"""Which of TorchServe's test files are run, and which of their cases stay different on purpose."""

import re
from typing import NamedTuple

# Files that need no GPU, no gRPC and none of the large libraries. test_auto_recover.py, which waits without end for
# sentences of TorchServe's log, is not among them.
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
)


class Different(NamedTuple):
    """Cases that stay different: a pattern of `FILE::NAME`, and why."""

    cases: str
    why: str


_RESTORED = (
    "start_from_default", "replace_mar_file_with_dummy",
    "restart_torchserve_with_last_snapshot_with_model_mar_removed", "restart_torchserve_with_one_of_model_mar_removed",
)  # fmt: skip

DIFFERENT: tuple[Different, ...] = (
    Different(
        rf"test_snapshot\.py::test_({'|'.join(_RESTORED)})$",
        "what was registered is restored from the state directory, where unpacked archives are kept, too",
    ),
    Different(
        r"test_model_control_mode\.py::test_(register|delete)_model_failing$",
        "who may command the daemon may register models: there is no second switch, `--enable-model-api`",
    ),
    Different(
        r"test_model_control_mode\.py::test_(register|delete)_model_failing_https$",
        "the key of its certificate is one that OpenSSL finds too small",
    ),
    Different(
        r"test_handler_traceback_logging\.py::",
        "a model that cannot be loaded is not loaded again and again: `tsctl retry`; the traceback is logged once",
    ),
    Different(
        r"test_startup_timeout\.py::.*\[5\]",
        "the sentence of the log about a startup timeout is tsctl's own; the timeout itself holds",
    ),
)


# Failures that follow from what this machine lacks, beside those of the examples.
LACKING: tuple[tuple[str, str], ...] = (
    (r"^test_mnist_template\.py::[^\0]*Wrong prediction", "the checkout lacks the trained weights"),
    (r"linear\.onnx|onnx\.mar", "the case before it could not make its model"),
    (r"torchserve\.pytorch\.org|Name or service not known", "the case downloads"),
)


def lacking(case: str, message: str) -> str:
    """Return what this machine lacks for a case that failed with a message; empty if nothing."""
    return next((why for pattern, why in LACKING if re.search(pattern, f"{case}\n{message}")), "")


def why_different(case: str) -> str:
    """Return why a case, as `FILE::NAME`, stays different; empty if it should pass."""
    return next((each.why for each in DIFFERENT if re.match(each.cases, case)), "")
