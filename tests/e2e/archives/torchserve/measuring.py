"""Metrics of its own: counters, times, sizes, a declared metric, and a timed stage."""

from ts.handler_utils.timer import timed
from ts.metrics.dimension import Dimension
from ts.metrics.metric_type_enum import MetricTypes


class Measuring:
    def __init__(self):
        self.context = None

    def initialize(self, context):
        self.context = context
        self.declared = context.metrics.add_metric_to_cache(
            metric_name="RowsSeen", unit="count", dimension_names=["ModelName", "Kind"], metric_type=MetricTypes.COUNTER
        )

    @timed
    def preprocess(self, data):
        return [row["body"] for row in data]

    def handle(self, data, context):
        metrics = context.metrics
        bodies = self.preprocess(data)
        self.declared.add_or_update(len(bodies), [context.model_name, "raw"])
        for idx, body in enumerate(bodies):
            metrics.add_size("BodySize", len(body), idx=idx, unit="B", dimensions=[Dimension("Kind", "raw")])
            metrics.add_counter("BodyCount", 1, idx=idx)
        metrics.add_percent("Fullness", 100.0 * len(data) / context.system_properties["batch_size"])
        return [len(body) for body in bodies]
