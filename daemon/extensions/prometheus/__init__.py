"""`/metrics`, for Prometheus: what the core has counted, and the samples of all extensions, as text.

service    the route
families   the core's counters and measurements, and those of handlers, as families; their names and help are here
gauges     the present state of each version and of its workers, as families
"""

from tsctl.daemon.declarations import ClientProtocol, MetricRow, Operations
from tsctl.daemon.extension import Extension, Kernel, Service

_HOST = ("Level", "Hostname")
_GPU = ("Level", "DeviceId", "Hostname")
_SUM = ("model_name", "model_version", "hostname")
_VERSION = ("model", "version")


class PrometheusProtocol(ClientProtocol):
    def operations(self) -> Operations:
        from tsctl.daemon.extensions.prometheus.service import OPERATIONS

        return OPERATIONS


class PrometheusExtension(Extension):
    name = "prometheus"
    protocol = PrometheusProtocol()
    metrics = (
        MetricRow("Requests2XX", "counter", "Answers with a status of 2xx", _HOST),
        MetricRow("Requests4XX", "counter", "Answers with a status of 4xx", _HOST),
        MetricRow("Requests5XX", "counter", "Answers with a status of 5xx", _HOST),
        MetricRow(
            "tsctl_client_requests_total",
            "counter",
            "Answers to a client of the keys file, by status",
            ("client", "code"),
        ),
        MetricRow("ts_inference_requests_total", "counter", "Requests for a prediction", _SUM),
        MetricRow(
            "ts_inference_latency_microseconds",
            "counter",
            "Sum of the times from a request to its answer, microseconds",
            _SUM,
        ),
        MetricRow(
            "ts_queue_latency_microseconds", "counter", "Sum of the times that requests waited, microseconds", _SUM
        ),
        MetricRow("QueueTime", "gauge", "How long the first request of the last batch waited, milliseconds", _HOST),
        MetricRow(
            "WorkerThreadTime", "gauge", "Time of the last batch on its way to the worker and back, milliseconds", _HOST
        ),
        MetricRow(
            "PredictionTime",
            "gauge",
            "Time of the last batch in the worker, milliseconds",
            ("ModelName", "Level", "Hostname"),
        ),
        MetricRow(
            "WorkerLoadTime",
            "gauge",
            "Time from a worker's start until its model was loaded, milliseconds",
            ("WorkerName", *_HOST),
        ),
        MetricRow("CPUUtilization", "gauge", "CPUUtilization of this machine, percent", _HOST),
        MetricRow("MemoryUsed", "gauge", "MemoryUsed of this machine, megabytes", _HOST),
        MetricRow("MemoryAvailable", "gauge", "MemoryAvailable of this machine, megabytes", _HOST),
        MetricRow("MemoryUtilization", "gauge", "MemoryUtilization of this machine, percent", _HOST),
        MetricRow("DiskUsage", "gauge", "DiskUsage of this machine, gigabytes", _HOST),
        MetricRow("DiskAvailable", "gauge", "DiskAvailable of this machine, gigabytes", _HOST),
        MetricRow("DiskUtilization", "gauge", "DiskUtilization of this machine, percent", _HOST),
        MetricRow("GPUUtilization", "gauge", "How busy a GPU is, percent", _GPU),
        MetricRow("GPUMemoryUtilization", "gauge", "How full the memory of a GPU is, percent", _GPU),
        MetricRow("GPUMemoryUsed", "gauge", "Memory of a GPU in use, megabytes", _GPU),
        MetricRow("tsctl_gpu_memory_total_bytes", "gauge", "Memory of a GPU, with its name", ("gpu", "name", "uuid")),
        MetricRow(
            "tsctl_requests_total",
            "counter",
            "Answered requests by status, refused and expired ones too",
            (*_VERSION, "code"),
        ),
        MetricRow(
            "tsctl_requests_judged_total",
            "counter",
            "Requests that count for or against the version, not those that a client ended, got wrong or may not send",
            (*_VERSION, "verdict"),
        ),
        MetricRow(
            "tsctl_requests_refused_total",
            "counter",
            "Requests refused before they were run, by reason",
            (*_VERSION, "reason"),
        ),
        MetricRow(
            "tsctl_requests_retried_total",
            "counter",
            "How often a request returned to the queue after a worker had begun it",
        ),
        MetricRow("tsctl_worker_starts_total", "counter", "Workers started"),
        MetricRow("tsctl_request_bytes_total", "counter", "Bytes of the requests' bodies"),
        MetricRow("tsctl_answer_bytes_total", "counter", "Bytes of the answers of workers"),
        MetricRow("tsctl_worker_exits_total", "counter", "Workers that ended, by how", (*_VERSION, "how")),
        MetricRow("tsctl_batches_total", "counter", "Batches sent to a worker, by reason", (*_VERSION, "reason")),
        MetricRow(
            "tsctl_requests_expired_total",
            "counter",
            "Expired requests, by where they were (in the queue, or with a worker) and whose limit it was",
            (*_VERSION, "where", "limit"),
        ),
        MetricRow(
            "tsctl_isolated_batches_total",
            "counter",
            "Failed batches whose requests were run again, each alone or in halves",
        ),
        MetricRow("tsctl_isolated_failures_total", "counter", "Requests of those batches that failed alone, too"),
        MetricRow(
            "tsctl_model_crashing",
            "gauge",
            "Whether workers end one after the other while they run requests (1) or not (0)",
        ),
        MetricRow(
            "tsctl_request_latency_seconds",
            "histogram",
            "Time from a request to its answer, if a worker had it: ok (below 500), error, or expired; or client: its"
            " slow reading held the answer up",
            (*_VERSION, "outcome"),
        ),
        MetricRow("tsctl_queue_time_seconds", "histogram", "Time that a request waited until it was sent to a worker"),
        MetricRow("tsctl_inference_time_seconds", "histogram", "Time of a batch in the worker"),
        MetricRow(
            "tsctl_stage_seconds",
            "histogram",
            "Time of a batch in each stage of a built-in handler; a GPU may work on in the stage after",
            (*_VERSION, "stage"),
        ),
        MetricRow("tsctl_batch_size", "histogram", "Requests in a batch"),
        MetricRow(
            "tsctl_handler_metrics_dropped_total",
            "counter",
            "Measurements of a handler that are not shown, by reason",
            (*_VERSION, "reason"),
        ),
        MetricRow(
            "tsctl_event_loop_stalls_total",
            "counter",
            "How often the event loop stood still for half a second or more",
            (),
        ),
        MetricRow(
            "tsctl_event_loop_stall_seconds_total", "counter", "How long the event loop stood still, all in all", ()
        ),
        MetricRow(
            "tsctl_server_up",
            "gauge",
            "Whether a server of the daemon accepts connections or calls: 1, or 0 until it is started again",
            ("server",),
        ),
        MetricRow(
            "tsctl_server_ends_total",
            "counter",
            "How often a server of the daemon has ended, and was started again",
            ("server",),
        ),
        MetricRow("tsctl_internal_errors_total", "counter", "Exceptions that nothing in the daemon has caught", ()),
        MetricRow("tsctl_events_total", "counter", "Events of the daemon by kind", ("kind", "level")),
        MetricRow("tsctl_queue_jobs", "gauge", "Requests that wait"),
        MetricRow("tsctl_queue_bytes", "gauge", "Bytes that wait"),
        MetricRow("tsctl_queue_oldest_seconds", "gauge", "Age of the request that has waited the longest"),
        MetricRow("tsctl_running_jobs", "gauge", "Requests that run"),
        MetricRow("tsctl_workers_wanted", "gauge", "Workers that there should be"),
        MetricRow("tsctl_workers_ready", "gauge", "Workers with the model"),
        MetricRow("tsctl_workers_pausing", "gauge", "Workers that ended too early, and are started again later"),
        MetricRow("tsctl_workers_given_up", "gauge", "Workers that failed, and are not started again"),
        MetricRow("tsctl_arrivals_per_second", "gauge", "Requests a second, lately"),
        MetricRow("tsctl_learned_batch_seconds", "gauge", "What a batch takes whatever its size, as learned"),
        MetricRow("tsctl_learned_request_seconds", "gauge", "What each request adds to a batch, as learned"),
        MetricRow("tsctl_worker_memory_bytes", "gauge", "Memory of a worker that is in RAM", (*_VERSION, "worker")),
        MetricRow(
            "tsctl_worker_cpu_seconds_total", "counter", "Processor time of a worker's process", (*_VERSION, "worker")
        ),
        MetricRow(
            "tsctl_worker_gpu_memory_bytes",
            "gauge",
            "Memory that a worker holds on a GPU, as it tells",
            (*_VERSION, "worker", "gpu"),
        ),
    )

    def install(self, kernel: Kernel) -> Service | None:
        if not kernel.config.metrics:
            return None
        from tsctl.daemon.extensions.prometheus.service import PrometheusService

        return PrometheusService(kernel)
