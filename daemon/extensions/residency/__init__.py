"""Models that are loaded by a request and unloaded when idle, and a budget of memory for all of them.

state       draws the residence of one version
residence   one version: its state, and what the next decision needs; says whether the version has workers
decision    which versions are loaded and unloaded now: a pure function of facts and time
residency   all versions: facts are gathered, the decision is asked for, and carried out
service     the same as a service of the daemon, with what the snapshot keeps
"""

from tsctl.daemon.declarations import MetricRow
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.model_settings.kinds import Boolean, Choice, TimeSpan
from tsctl.daemon.model_settings.row import ModelSetting
from tsctl.daemon.setting_values import Setting, grouped, parse_size, parse_span

AT_ONCE, ON_DEMAND = LOADING = ("at_once", "on_demand")


def parse_memory_budget(text: str) -> str:
    """Check a budget of memory: `16GiB`, or `host=16GiB,gpu=20GiB`; return it in the latter form."""
    parts = [part.strip().rpartition("=") for part in text.split(",")]
    sizes = {name.strip().lower() or "host": size.strip() for name, _, size in parts}
    if len(sizes) < len(parts) or not sizes.keys() <= {"host", "gpu"} or not all(map(parse_size, sizes.values())):
        raise ValueError(f"`{text}` is no budget of memory (write 16GiB, or host=16GiB,gpu=20GiB)")
    return ",".join(f"{name}={size}" for name, size in sizes.items())


class ResidencyExtension(Extension):
    name = "residency"
    settings = grouped(
        "Workers and handlers",
        Setting(
            "models_memory", None, parse_memory_budget, "SIZE", "Memory of all models: 16GiB or host=16GiB,gpu=20GiB."
        ),
        Setting(
            "model_keep_alive", 300.0, parse_span, "TIME",
            "How long an idle model with `loading: on_demand` stays loaded.",
        ),
    )  # fmt: skip
    model_settings = (
        ModelSetting(
            name="loading",
            group="Memory",
            kind=Choice(LOADING),
            label="loading",
            help="`on_demand` to start workers with the first request, and end them when idle.",
            yaml="loading",
            rest="loading",
            flag="--loading",
            default=AT_ONCE,
            changes="at once; a model that is loaded stays so until it is idle",
        ),
        ModelSetting(
            name="keep_alive",
            group="Memory",
            kind=TimeSpan(),
            label="keep-alive",
            help="How long an idle model that is loaded on demand stays loaded, such as 30s or 5m; `forever` for "
            "always.",
            yaml="keepAlive",
            rest="keep_alive",
            flag="--keep-alive",
            daemon="model_keep_alive",
            changes="at once",
        ),
        ModelSetting(
            name="pinned",
            group="Memory",
            kind=Boolean(),
            label="pinning",
            help="Keep a model that is loaded on demand in memory once it is loaded.",
            yaml="pinned",
            rest="pinned",
            flag="--pinned",
            default=False,
            changes="at once",
        ),
    )
    metrics = (
        MetricRow(
            "tsctl_model_loaded", "gauge", "Whether the version is in memory, with a worker that has been ready"
        ),
        MetricRow(
            "tsctl_model_memory_bytes", "gauge", "Memory of the host that the version took when it was last measured"
        ),
        MetricRow("tsctl_model_load_seconds", "gauge", "How long the last load of the version took"),
        MetricRow(
            "tsctl_model_loads_total", "counter", "Loads of the version, by reason: request, startup, operator",
            ("model", "version", "reason"),
        ),
        MetricRow(
            "tsctl_model_unloads_total", "counter", "Unloadings of the version, by reason: idle, room, operator",
            ("model", "version", "reason"),
        ),
    )  # fmt: skip

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.residency.service import ResidencyService

        return ResidencyService(kernel)
