"""As many workers as the traffic takes, between `minWorkers` and `maxWorkers`, where `targetQueueMs` is set.

facts        the facts and the answer of the rule
rule         facts → how many workers, and why: a pure function, without a clock
autoscaler   one version: facts are gathered, the rule is asked, its answer is carried out
service      the same as a service of the daemon, with its metrics
"""

from tsctl.daemon.declarations import EventRow, MetricRow
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.model_settings.kinds import Duration
from tsctl.daemon.model_settings.row import ModelSetting


class ScalingExtension(Extension):
    name = "scaling"
    needs = "target_queue"
    model_settings = (
        ModelSetting(
            name="target_queue",
            group="Workers",
            kind=Duration("ms"),
            label="target of the waiting time",
            help="Milliseconds that requests may wait before a worker is added, up to `maxWorkers`; 0 is no "
            "autoscaling.",
            yaml="targetQueueMs",
            rest="target_queue_ms",
            flag="--target-queue",
            default=0.0,
            changes="from the next second on",
        ),
    )
    events = (
        EventRow("autoscaled", "info", "a worker was added or taken away, to keep the waiting time near its target"),
        EventRow("autoscale-blocked", "warning", "requests wait longer than the target, and no worker can be added"),
    )
    metrics = (  # of versions with `targetQueueMs`
        MetricRow("tsctl_target_wait_seconds", "gauge", "Target of the waiting time"),
        MetricRow("tsctl_predicted_wait_seconds", "gauge", "Predicted waiting time"),
        MetricRow("tsctl_workers_min", "gauge", "Workers at least"),
        MetricRow("tsctl_workers_max", "gauge", "Workers at most"),
    )

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.scaling.service import ScalingService

        return ScalingService(kernel.registry, kernel.registrar.live.loading, kernel.clock, kernel.gpus.now)
