"""TorchServe's import names lead to ours."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tsctl.handlers.runtime import compat
from tsctl.handlers.torchserve.table import TABLE

NAMES = [(module, name) for module, names in TABLE.items() for name in names]


@pytest.fixture(autouse=True)
def installed(imports: None) -> None:
    compat.install()


@pytest.fixture
def torchserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package called `ts`, first on `sys.path`, with a module that ours has and one that ours lacks."""
    package = tmp_path / "ts"
    package.mkdir()
    for name in ("__init__", "context", "launcher"):
        (package / f"{name}.py").write_text("class Context: ...\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[f"{module}.{name}" for module, name in NAMES])
def test_a_name_of_torchserve_is_ours(module: str, name: str) -> None:
    our_module, our_name = TABLE[module][name]

    found = getattr(importlib.import_module(module), name)

    assert found is getattr(importlib.import_module(our_module), our_name)


@pytest.mark.parametrize(
    "statement",
    [
        "from ts.torch_handler.base_handler import BaseHandler",
        "from ts.torch_handler import base_handler; BaseHandler = base_handler.BaseHandler",
        "import ts.torch_handler.base_handler; BaseHandler = ts.torch_handler.base_handler.BaseHandler",
        "import ts.torch_handler.base_handler as base; BaseHandler = base.BaseHandler",
    ],
)
def test_every_form_of_import_works(statement: str) -> None:
    namespace: dict[str, type] = {}

    exec(statement, namespace)

    assert namespace["BaseHandler"].__module__ == "tsctl.handlers.builtin.base"


@pytest.mark.usefixtures("torchserve")
def test_ours_wins_over_another_package_of_that_name() -> None:
    found = importlib.import_module("ts.context").Context

    assert found.__module__ == "tsctl.handlers.sdk.context"
    with pytest.raises(ImportError, match=r"ts\.launcher"):  # which the other has
        importlib.import_module("ts.launcher")


# Every import of TorchServe's examples and documentation (but streaming, and what ABSENT names), and some of others'.
IN_THE_WILD = """
    ts.torch_handler.base_handler.BaseHandler ts.torch_handler.image_classifier.ImageClassifier ts.context.Context
    ts.handler_utils.timer.timed ts.metrics.dimension.Dimension ts.handler_utils.micro_batching.MicroBatching
    ts.handler_utils.utils.import_class ts.utils.util.map_class_to_label ts.metrics.metric.Metric
    ts.metrics.process_memory_metric.check_process_mem_usage ts.metrics.metric_type_enum.MetricTypes
    ts.utils.util.load_label_mapping ts.utils.util.list_classes_from_module ts.utils.util.check_valid_pt2_backend
    ts.utils.util.CLEANUP_REGEX ts.torch_handler.text_handler.CLEANUP_REGEX
    ts.handler_utils.hf_batch_streamer.TextIteratorStreamerBatch
    ts.protocol.otf_message_handler.send_intermediate_predict_response
    ts.torch_handler.unit_tests.test_utils.mock_context.MockContext ts.torch_handler.object_detector.ObjectDetector
    ts.utils.util.PredictionException ts.version.__version__ ts.torch_handler.vision_handler.VisionHandler
    ts.torch_handler.text_handler.TextHandler ts.torch_handler.text_classifier.TextClassifier
    ts.torch_handler.image_segmenter.ImageSegmenter ts.torch_handler.request_envelope.body.BodyEnvelope
    ts.torch_handler.request_envelope.json.JSONEnvelope ts.torch_handler.request_envelope.kserve.KServeEnvelope
    ts.torch_handler.request_envelope.kservev2.KServev2Envelope ts.torch_handler.request_envelope.base.BaseEnvelope
    ts.metrics.metrics_store.MetricsStore ts.metrics.metric_cache_yaml_impl.MetricsCacheYamlImpl
    ts.metrics.caching_metric.CachingMetric ts.service.emit_metrics ts.service.PredictionException
    ts.torch_handler.base_handler.XLA_AVAILABLE ts.torch_handler.contractions.CONTRACTION_MAP
    ts.torch_handler.text_handler.BaseHandler
"""


def test_what_handlers_import_is_there() -> None:
    assert {*IN_THE_WILD.split()} <= {f"{module}.{name}" for module, name in NAMES}


_PACKAGE = "needs .*%s.*, which tsctl does not bring: use that package itself in the handler"


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("from ts.torch_handler.dali_handler import DALIHandler", _PACKAGE % "NVIDIA DALI"),
        ("from ts.torch_handler import dali_handler", _PACKAGE % "NVIDIA DALI"),
        ("from ts.handler_utils.distributed.pt_pippy import get_pipeline_driver", _PACKAGE % "PiPPy"),
        ("from ts.handler_utils.distributed.deepspeed import get_ds_engine", _PACKAGE % "DeepSpeed"),
        ("from ts.torch_handler.distributed.base_pippy_handler import BasePippyHandler", _PACKAGE % "PiPPy"),
        (
            "from ts.torch_handler.distributed.base_deepspeed_handler import BaseDeepSpeedHandler",
            _PACKAGE % "DeepSpeed",
        ),
        ("from ts.torch_handler.trt_llm_handler import TRTLLMHandler", _PACKAGE % "TensorRT-LLM"),
        ("from ts.launcher import start", "`ts.launcher` starts TorchServe: use `tsctl start`"),
        ("import ts.llm_launcher", "register an archive of `--handler vllm_handler` instead"),
        ("from ts.metrics import system_metrics", "`ts.metrics.system_metrics` .* the daemon measures the machine"),
        ("from ts.torch_handler import captum_utils", "`ts.torch_handler.captum_utils` is no module that tsctl has"),
    ],
)
def test_a_module_that_ours_lacks_says_why_and_what_to_use(statement: str, sentence: str) -> None:
    with pytest.raises(ImportError, match=sentence):
        exec(statement, {})


def test_a_star_imports_the_names_of_a_module() -> None:
    namespace: dict[str, type] = {}

    exec("from ts.context import *", namespace)

    assert {"Context", "RequestProcessor"} < namespace.keys()


def test_a_name_that_ours_lacks_is_an_import_error() -> None:
    with pytest.raises(ImportError, match=r"cannot import name 'Nothing' from 'ts\.context'"):
        exec("from ts.context import Nothing", {})
    with pytest.raises(AttributeError, match=r"tsctl's `ts\.context` has no `Nothing`"):
        importlib.import_module("ts.context").Nothing  # noqa: B018 - looking it up is the test


def test_nothing_is_looked_up_before_it_is_used() -> None:
    module: ModuleType = importlib.import_module("ts.torch_handler.image_classifier")

    before = "ImageClassifier" in vars(module)
    found = module.ImageClassifier

    assert not before
    assert vars(module)["ImageClassifier"] is found


def test_other_modules_are_found_as_ever() -> None:
    finder = sys.meta_path[0]

    assert finder.find_spec("json", None) is None
    assert finder.find_spec("tsx", None) is None
