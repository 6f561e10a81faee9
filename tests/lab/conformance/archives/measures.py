"""A class that emits metrics of every kind."""

from ts.metrics.dimension import Dimension
from ts.metrics.metric_type_enum import MetricTypes


class Measures:
    def initialize(self, context):
        self.cached = context.metrics.add_metric_to_cache(
            metric_name="Seen", unit="count", dimension_names=["ModelName", "Level"], metric_type=MetricTypes.COUNTER
        )

    def handle(self, data, context):
        metrics = context.metrics
        metrics.add_counter("Rows", len(data), None, [Dimension("Kind", "any")])
        metrics.add_time("Took", 1.5, None, "ms")
        metrics.add_size("Size", 2, None, "MB")
        metrics.add_percent("Share", 50, None)
        metrics.add_error("Oops", 1)
        metrics.add_metric("Mine", 7, unit="count", metric_type=MetricTypes.GAUGE)
        self.cached.add_or_update(1, ["measures", "Model"])
        return ["measured" for _ in data]
