"""Measures what it is told to: {"count": N} counts, {"as": TYPE} uses a name again with another type."""

import os

from ts.metrics.dimension import Dimension
from ts.metrics.metric_type_enum import MetricTypes


class Measures:
    def initialize(self, context):
        context.metrics.add_size("WeightsSize", 12)
        self.heat = context.metrics.add_metric_to_cache("Heat", "C", ["Where"], MetricTypes.GAUGE)

    def handle(self, data, context):
        metrics = context.metrics
        answers = []
        for index, row in enumerate(data):
            wish = row["body"]
            if "count" in wish:
                metrics.add_counter("Words", wish["count"], idx=index, dimensions=[Dimension("Language", "de")])
                metrics.add_metric("WordLength", wish["count"], "count", metric_type=MetricTypes.HISTOGRAM)
                self.heat.add_or_update(wish["count"], ["here"])
            if "as" in wish:
                metrics.add_metric("Words", 1, "count", metric_type=MetricTypes[wish["as"]])
            if "die" in wish:
                os._exit(7)
            answers.append({"id": context.get_request_id(index), "headers": context.get_all_request_header(index)})
        return answers
