"""A handler that reports the size of each batch as a metric that only metrics.yaml declares."""

from ts.metrics.metric_type_enum import MetricTypes


def handle(data, context):
    if data is None:
        return None
    size = context.metrics.get_metric(metric_name="RequestBatchSize", metric_type=MetricTypes.GAUGE)
    size.add_or_update(value=len(data), dimension_values=[context.model_name])
    return [len(data)] * len(data)
