"""Features that cases wait for. Delete a line as soon as its feature is there: its cases are compared from then on."""

PENDING: frozenset[str] = frozenset({
    "customized",  # GET /models/MODEL?customized=true
    "detector",  # object_detector
    "explanations",  # /explanations/MODEL
    "kserve",  # /v1/models/MODEL:predict, /v2/models/MODEL/infer
    "metrics",  # context.metrics in full
    "names",  # the whole table of ts.* import names
    "options",  # OPTIONS and /api-description
    "sagemaker",  # /invocations, /models/MODEL/invoke
    "segmenter",  # image_segmenter
    "streaming",  # send_intermediate_predict_response
    "text",  # text_classifier, with captum for its explanations
})  # fmt: skip
