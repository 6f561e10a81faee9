"""Shadows: versions that get copies of a model's requests, and whose answers are compared and dropped.

mirror       one model: which requests are copied, and how many at a time
idle_time    when copies run, and that a request suspends them
"""

from tsctl.daemon.declarations import EventRow, MetricRow
from tsctl.daemon.extension import Extension, Kernel, Service


class ShadowingExtension(Extension):
    name = "shadowing"
    events = (
        EventRow(
            "shadow-differed", "warning",
            "a shadow failed, or answered otherwise than the version of its model's clients",
        ),
    )  # fmt: skip
    metrics = (
        MetricRow(
            "tsctl_shadow_answers_total", "counter", "Copies of requests for a shadow, by what became of them",
            ("model", "version", "result"),
        ),
    )  # fmt: skip

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.shadowing.mirror import ShadowingService

        return ShadowingService(kernel)
