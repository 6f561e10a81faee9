"""A function that uses metrics that only metrics.yaml declares, as the request says: {"do": "misfit"}."""

from ts.metrics.dimension import Dimension
from ts.metrics.metric_type_enum import MetricTypes


def infer(data, context):
    if data is None:
        return None
    metrics = context.metrics
    for row in data:
        match row["body"].get("do"):
            case "report":
                size = metrics.get_metric(metric_name="RequestBatchSize", metric_type=MetricTypes.GAUGE)
                size.add_or_update(value=len(data), dimension_values=["declares"])
            case "add":
                metrics.add_time("Took", 1.5, dimensions=[Dimension("Stage", "first")])
                metrics.add_counter("Undeclared", 1)
            case "misfit":
                metrics.get_metric("RequestBatchSize", MetricTypes.GAUGE).add_or_update(1, ["declares", "too many"])
                metrics.get_metric("Rows").add_or_update(-1, ["declares"])
            case "another type":
                metrics.get_metric("RequestBatchSize")
            case "another name":
                try:
                    metrics.get_metric("Nothing")
                except KeyError:
                    return ["a KeyError" for _ in data]
            case "declare":
                made = metrics.add_metric_to_cache("Made", "MB", ["Where"])
                made.update(3, dimensions=[Dimension("There", "here")])
                return [f"{made.metric_type.value} {made.unit}" for _ in data]
    return ["done" for _ in data]
