"""TorchServe's modules and names, and ours for them.

The table covers all imports in TorchServe's examples and documentation, except modules that need packages tsctl does
not include, and what its server consists of: those are in ABSENT.
"""

_BASE = "tsctl.handlers.builtin"
_METRICS = "tsctl.handlers.sdk.metrics"
_OWN = "tsctl.handlers.torchserve"
_CONTEXT = {
    "Context": ("tsctl.handlers.sdk.context", "Context"),
    "RequestProcessor": ("tsctl.handlers.sdk.request_processor", "RequestProcessor"),
}
_PREDICTION_EXCEPTION = {"PredictionException": ("tsctl.handlers.sdk.errors", "PredictionException")}
_CLEANUP = {"CLEANUP_REGEX": ("tsctl.handlers.builtin.support.cleaning", "CLEANUP_REGEX")}
_STREAM = {"send_intermediate_predict_response": ("tsctl.handlers.sdk.streaming", "send_intermediate_predict_response")}
_BASE_HANDLER = {"BaseHandler": (f"{_BASE}.base", "BaseHandler")}
_VISION_HANDLER = {"VisionHandler": (f"{_BASE}.vision", "VisionHandler")}
_TEXT_HANDLER = {"TextHandler": (f"{_BASE}.text", "TextHandler")}
_LABELS = {
    "load_label_mapping": (f"{_BASE}.support.labels", "load_label_mapping"),
    "map_class_to_label": (f"{_BASE}.support.labels", "map_class_to_label"),
}
_TIMED = {"timed": ("tsctl.handlers.sdk.timer", "timed")}
_VERSION = {"__version__": (f"{_OWN}.util", "__version__")}

# ts module → {name in it: (our module, our name)}
TABLE: dict[str, dict[str, tuple[str, str]]] = {
    "ts": _VERSION,
    "ts.context": _CONTEXT,
    "ts.handler_utils": {},
    "ts.handler_utils.hf_batch_streamer": {
        "TextIteratorStreamerBatch": (f"{_OWN}.batch_streamer", "TextIteratorStreamerBatch"),
    },
    "ts.handler_utils.micro_batching": {"MicroBatching": ("tsctl.handlers.torchserve.micro_batching", "MicroBatching")},
    "ts.handler_utils.text_utils": {
        "get_tokenizer": ("tsctl.handlers.builtin.support.tokens", "get_tokenizer"),
        "ngrams_iterator": ("tsctl.handlers.builtin.support.tokens", "ngrams_iterator"),
    },
    "ts.handler_utils.timer": _TIMED,
    "ts.handler_utils.utils": {
        "import_class": (f"{_OWN}.util", "import_class"),
        **_STREAM,
    },
    "ts.metrics": {},
    "ts.metrics.caching_metric": {"CachingMetric": (_METRICS, "CachingMetric")},
    "ts.metrics.dimension": {"Dimension": (_METRICS, "Dimension")},
    "ts.metrics.metric": {"Metric": (f"{_OWN}.metrics_store", "Metric")},
    "ts.metrics.metric_cache_errors": {
        "GeneralMetricsCacheError": ("builtins", "Exception"),
        "MetricsCacheIOError": ("builtins", "OSError"),
        "MetricsCacheKeyError": ("builtins", "KeyError"),
        "MetricsCacheTypeError": ("builtins", "TypeError"),
        "MetricsCacheValueError": ("builtins", "ValueError"),
    },
    "ts.metrics.metric_cache_yaml_impl": {"MetricsCacheYamlImpl": (_METRICS, "MetricsCache")},
    "ts.metrics.metric_type_enum": {"MetricTypes": (_METRICS, "MetricTypes")},
    "ts.metrics.metrics_store": {"MetricsStore": (f"{_OWN}.metrics_store", "MetricsStore")},
    "ts.metrics.process_memory_metric": {
        "check_process_mem_usage": (f"{_OWN}.util", "check_process_mem_usage"),
        "get_cpu_usage": (f"{_OWN}.util", "get_cpu_usage"),
    },
    "ts.protocol": {},
    "ts.protocol.otf_message_handler": _STREAM,
    "ts.service": {"emit_metrics": (f"{_OWN}.metrics_store", "emit_metrics"), **_PREDICTION_EXCEPTION},
    "ts.torch_handler": {},
    "ts.torch_handler.base_handler": {
        **_BASE_HANDLER,
        **_LABELS,
        "list_classes_from_module": (f"{_OWN}.util", "list_classes_from_module"),
        "IPEX_AVAILABLE": (f"{_OWN}.util", "IPEX_AVAILABLE"),
        "ONNX_AVAILABLE": (f"{_OWN}.util", "ONNX_AVAILABLE"),
        "PROFILER_AVAILABLE": (f"{_OWN}.util", "PROFILER_AVAILABLE"),
        "PT2_AVAILABLE": (f"{_OWN}.util", "PT2_AVAILABLE"),
        "PT230_AVAILABLE": (f"{_OWN}.util", "PT230_AVAILABLE"),
        "XLA_AVAILABLE": (f"{_OWN}.util", "XLA_AVAILABLE"),
        **_TIMED,
    },
    "ts.torch_handler.contractions": {"CONTRACTION_MAP": (f"{_BASE}.support.cleaning", "CONTRACTIONS")},
    "ts.torch_handler.image_classifier": {
        "ImageClassifier": (f"{_BASE}.image_classifier", "ImageClassifier"),
        **_VISION_HANDLER,
        **_LABELS,
    },
    "ts.torch_handler.image_segmenter": {
        "ImageSegmenter": (f"{_BASE}.image_segmenter", "ImageSegmenter"),
        **_VISION_HANDLER,
    },
    "ts.torch_handler.object_detector": {
        "ObjectDetector": (f"{_BASE}.object_detector", "ObjectDetector"),
        **_VISION_HANDLER,
        **_LABELS,
    },
    "ts.torch_handler.request_envelope": {},
    "ts.torch_handler.request_envelope.base": {"BaseEnvelope": (f"{_OWN}.base_envelope", "BaseEnvelope")},
    "ts.torch_handler.request_envelope.body": {"BodyEnvelope": ("tsctl.handlers.envelopes.json", "BodyEnvelope")},
    "ts.torch_handler.request_envelope.json": {"JSONEnvelope": ("tsctl.handlers.envelopes.json", "JSONEnvelope")},
    "ts.torch_handler.request_envelope.kserve": {"KServeEnvelope": ("tsctl.handlers.envelopes.json", "KServeEnvelope")},
    "ts.torch_handler.request_envelope.kservev2": {
        "KServev2Envelope": ("tsctl.handlers.envelopes.kservev2", "KServev2Envelope"),
    },
    "ts.torch_handler.text_classifier": {
        "TextClassifier": (f"{_BASE}.text_classifier", "TextClassifier"),
        **_TEXT_HANDLER,
        **_LABELS,
    },
    "ts.torch_handler.text_handler": {**_TEXT_HANDLER, **_BASE_HANDLER, **_CLEANUP},
    "ts.torch_handler.unit_tests": {},
    "ts.torch_handler.unit_tests.test_utils": {},
    "ts.torch_handler.unit_tests.test_utils.mock_context": {"MockContext": (f"{_OWN}.mock_context", "MockContext")},
    "ts.torch_handler.vision_handler": {**_VISION_HANDLER, **_BASE_HANDLER},
    "ts.torch_handler.vllm_handler": {"VLLMHandler": (f"{_BASE}.vllm.handler", "VLLMHandler")},
    "ts.utils": {},
    "ts.utils.util": {
        **_PREDICTION_EXCEPTION,
        "check_valid_pt2_backend": (f"{_BASE}.support.compiling", "check_valid_pt2_backend"),
        "get_yaml_config": (f"{_OWN}.util", "get_yaml_config"),
        "list_classes_from_module": (f"{_OWN}.util", "list_classes_from_module"),
        **_LABELS,
        **_CLEANUP,
    },
    "ts.version": _VERSION,
}

_LIBRARIES = "needs PiPPy, DeepSpeed or Neuron, which tsctl does not bring: use that package itself in the handler"
_DALI = "needs NVIDIA DALI, which tsctl does not bring: use that package itself in the handler"
_STARTS = "starts TorchServe: use `tsctl start` and `tsctl stop`"

# ts module, with all below that the table lacks → why tsctl has none, and what to use; the first that fits
ABSENT: dict[str, str] = {
    "ts.handler_utils.distributed": _LIBRARIES,
    "ts.handler_utils.preprocess": _DALI,
    "ts.launcher": _STARTS,
    "ts.llm_launcher": "starts TorchServe with `vllm_handler`: register an archive of `--handler vllm_handler` instead",
    "ts.model_server": _STARTS,
    "ts.torch_handler.dali_handler": _DALI,
    "ts.torch_handler.dali_image_classifier": _DALI,
    "ts.torch_handler.distributed": _LIBRARIES,
    "ts.torch_handler.trt_llm_handler": (
        "needs TensorRT-LLM, which tsctl does not bring: use that package itself in the handler"
    ),
    "ts.metrics": "is of TorchServe's server: a handler has `context.metrics`, and the daemon measures the machine",
    "ts": "is no module that tsctl has: of TorchServe's, it has those that handlers import",
}
