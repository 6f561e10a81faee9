"""A module function that imports what TorchServe's users import."""

import importlib

NAMES = (
    ("ts.context", "Context"),
    ("ts.handler_utils.micro_batching", "MicroBatching"),
    ("ts.handler_utils.timer", "timed"),
    ("ts.handler_utils.utils", "import_class"),
    ("ts.handler_utils.utils", "send_intermediate_predict_response"),
    ("ts.metrics.dimension", "Dimension"),
    ("ts.metrics.metric", "Metric"),
    ("ts.metrics.metric_type_enum", "MetricTypes"),
    ("ts.metrics.metrics_store", "MetricsStore"),
    ("ts.protocol.otf_message_handler", "send_intermediate_predict_response"),
    ("ts.service", "emit_metrics"),
    ("ts.torch_handler.base_handler", "BaseHandler"),
    ("ts.torch_handler.image_classifier", "ImageClassifier"),
    ("ts.torch_handler.image_segmenter", "ImageSegmenter"),
    ("ts.torch_handler.object_detector", "ObjectDetector"),
    ("ts.torch_handler.request_envelope.body", "BodyEnvelope"),
    ("ts.torch_handler.request_envelope.json", "JSONEnvelope"),
    ("ts.torch_handler.request_envelope.kserve", "KServeEnvelope"),
    ("ts.torch_handler.request_envelope.kservev2", "KServev2Envelope"),
    ("ts.torch_handler.text_classifier", "TextClassifier"),
    ("ts.torch_handler.text_handler", "TextHandler"),
    ("ts.torch_handler.unit_tests.test_utils.mock_context", "MockContext"),
    ("ts.torch_handler.vision_handler", "VisionHandler"),
    ("ts.utils.util", "CLEANUP_REGEX"),
    ("ts.utils.util", "PredictionException"),
    ("ts.utils.util", "check_valid_pt2_backend"),
    ("ts.utils.util", "list_classes_from_module"),
    ("ts.utils.util", "load_label_mapping"),
    ("ts.utils.util", "map_class_to_label"),
)


def handle(data, context):
    if data is None:
        return None
    missing = []
    for module, name in NAMES:
        try:
            getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            missing.append(f"{module}.{name}")
    return [{"missing": missing} for _ in data]
