"""The core's rows of the table of a model's settings (daemon/tables.py)."""

from typing import Any

from tsctl.daemon.model_settings.declarations import Declarations
from tsctl.daemon.model_settings.kinds import Boolean, Choice, Document, Duration, Integer
from tsctl.daemon.model_settings.resources import Cpus, Size
from tsctl.daemon.model_settings.row import OF_HANDLER, ModelSetting

MOST_WORKERS = 1024  # of one version: more is a typing error, and each worker is a process
POLICIES = ("auto", "fixed", "greedy")

_NEW_WORKER = "The setting is fixed when a worker starts; a change takes new workers: `tsctl register --replace`."
_DECLARED = "Only the archive can set this, because its handler expects these tensors."
_NEXT_BATCH = "from the next batch on"
_NEXT_REQUEST = "from the next request on"


def _is_platform(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 100


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(each) is int and each >= 0 for each in value)


CORE_MODEL_SETTINGS: tuple[ModelSetting, ...] = (
    ModelSetting(
        name="batch_size", kind=Integer(1), label="batch size", group="Batching",
        help="Requests in one batch, at most; a typed handler has a default of its own, mostly 32.",
        yaml="batchSize", rest="batch_size", flag="--batch-size",
        default=1, changes=_NEXT_BATCH,
    ),
    ModelSetting(
        name="max_delay", kind=Duration("ms"), label="maximum delay", group="Batching",
        help="Milliseconds that a batch may wait to fill.",
        yaml="maxBatchDelay", rest="max_batch_delay", flag="--max-delay",
        default=0.1, changes="from the next decision on",
    ),
    ModelSetting(
        name="policy", kind=Choice(POLICIES), label="batching", group="Batching",
        help="Batching policy.",
        yaml="batching", rest="batching", flag="--batching",
        default="auto", changes="from the next decision on",
    ),
    ModelSetting(
        name="workers", kind=Integer(0, MOST_WORKERS), label="number of workers", group="Workers",
        help="Worker processes; by default the archive's number, the daemon's, or 1.",
        yaml="minWorkers", rest="initial_workers", flag="--workers",
        default=0, daemon="default_workers", zero_is_unsaid=True,
        why="`tsctl scale` (PUT, as in TorchServe) changes the number of workers.",
    ),
    ModelSetting(
        name="max_workers", kind=Integer(0, MOST_WORKERS), label="largest number of workers", group="Workers",
        help="Worker processes at most, where `targetQueueMs` is set; by default as many as at least.",
        yaml="maxWorkers", rest="max_workers", flag="--max-workers",
        default=0, why="`tsctl scale` (PUT, as in TorchServe) changes the range.",
    ),
    ModelSetting(
        name="fallback_workers", kind=Integer(0, MOST_WORKERS),
        help="Worker processes if neither the registration, the archive nor the daemon names a number.",
        rest="fallback_workers",
        default=0, why="The client's own default: `tsctl register` asks for 1, clients of TorchServe for none.",
    ),
    ModelSetting(
        name="fallback_batch_size", kind=Integer(0),
        help="Batch size of built-in handlers if nothing else names one.",
        rest="fallback_batch_size",
        default=0, why="The client's own default: `tsctl` asks for 8 where it brings in a file, others for none.",
    ),
    ModelSetting(
        name="response_timeout", kind=Duration(positive=True), label="response timeout", group="Queue and timeouts",
        help="Seconds that a worker may take for one batch.",
        yaml="responseTimeout", rest="response_timeout", flag="--response-timeout",
        daemon="response_timeout", changes=_NEXT_BATCH,
    ),
    ModelSetting(
        name="startup_timeout", kind=Duration(positive=True), label="startup timeout", group="Workers",
        help="Seconds that a worker may take to load the model.",
        yaml="startupTimeout", rest="startup_timeout", flag="--startup-timeout",
        daemon="startup_timeout", changes="for workers that start from now on",
    ),
    ModelSetting(
        name="queue_jobs", kind=Integer(1), label="queue size", group="Queue and timeouts",
        help="Requests that may wait in the queue.",
        yaml="jobQueueSize", rest="job_queue_size", flag="--queue-jobs",
        daemon="queue_jobs", changes=f"{_NEXT_REQUEST}; requests that wait beyond the limit already are served",
    ),
    ModelSetting(
        name="queue_bytes", kind=Size(), label="queue size in bytes", group="Queue and timeouts",
        help="Bytes of requests that may wait in the queue.",
        yaml="jobQueueBytes", rest="job_queue_bytes", flag="--queue-bytes",
        daemon="queue_bytes", changes=f"{_NEXT_REQUEST}; requests that wait beyond the limit already are served",
    ),
    ModelSetting(
        name="queue_timeout", kind=Duration(), label="queue timeout", group="Queue and timeouts",
        help="Seconds that a request may wait in the queue; 0 is no limit.",
        yaml="queueTimeout", rest="queue_timeout", flag="--queue-timeout",
        default=0.0, changes="at once, also for requests that wait already",
    ),
    ModelSetting(
        name="client_timeout", kind=Duration(), label="client timeout", group="Queue and timeouts",
        help="Seconds that a request may take in total; 0 is no limit.",
        yaml="clientTimeoutInMills", rest="client_timeout", flag="--client-timeout", yaml_kind=Duration("ms"),
        default=0.0, changes=_NEXT_REQUEST,
    ),
    ModelSetting(
        name="retry", kind=Boolean(), label="retry", group="Failures and recording",
        help="Retry requests whose worker has ended; on by default for built-in handlers.",
        yaml="retry", rest="retry", flag="--retry",
        why=_NEW_WORKER,
    ),
    ModelSetting(
        name="isolate", kind=Boolean(), label="isolation", group="Failures and recording",
        help="Run the requests of a failed batch one by one; on by default for built-in handlers.",
        yaml="isolate", rest="isolate", flag="--isolate",
        why=_NEW_WORKER,
    ),
    ModelSetting(
        name="max_memory", kind=Size(), label="memory of a worker", group="Workers",
        help="Memory limit of each worker, such as 4GiB; a worker above the limit is replaced. No limit by default.",
        yaml="maxMemory", rest="max_memory", flag="--max-memory",
        why=_NEW_WORKER,
    ),
    ModelSetting(
        name="cpus", kind=Cpus(), label="processors", group="Workers",
        help="Processors that the workers may use, such as 0-3 or 0,2; all of them by default.",
        yaml="cpus", rest="cpus", flag="--cpus",
        default=(), why=_NEW_WORKER,
    ),
    ModelSetting(
        name="threads", kind=Integer(1, MOST_WORKERS), label="threads of a worker", group="Workers",
        help="Threads of one operation in each worker; by default OMP_NUM_THREADS, or the cores divided by the model's"
        " workers. A handler that sets another number while it loads keeps its own.",
        yaml="threads", rest="threads", flag="--threads",
        changes=_NEXT_BATCH,
    ),
    ModelSetting(
        name="device_type", kind=Choice(("cpu", "gpu", "auto")), label="kind of device",
        help="`cpu` to serve the model without GPUs; by default GPUs are used if there are any, and a load fails where"
        " torch cannot use them. `auto` serves the model on the CPU then.",
        yaml="deviceType", worker="device_type",
        why="Only the archive can set this, because it holds the model in the form that a device runs.",
    ),
    ModelSetting(
        name="device_ids", kind=Document("a list of whole numbers from 0", _are_numbers), label="GPUs",
        help="GPUs that the workers may use, by number; all of them by default.",
        yaml="deviceIds",
        why="Only the archive can set this, because it holds the model in the form that a device runs.",
    ),
    ModelSetting(
        name="continuous", kind=Boolean(), label="continuous batching",
        help="Requests join and leave between the calls of the handler, which answers a piece of each in every call.",
        yaml="continuousBatching", default=False, why=OF_HANDLER,
    ),
    ModelSetting(
        name="asynchronous", kind=Boolean(), label="asynchronous handler",
        help="Requests go to the worker as they come, and are answered in any order by a handler with `async def`.",
        yaml="asyncCommunication", default=False, why=OF_HANDLER,
    ),
    ModelSetting(
        name="inputs", kind=Declarations(), label="declared inputs",
        help="Tensors that the model takes, as the Open Inference Protocol describes them; by default any.",
        yaml="inputs", default=(), why=_DECLARED,
    ),
    ModelSetting(
        name="outputs", kind=Declarations(), label="declared outputs",
        help="Tensors that the model returns, as the Open Inference Protocol describes them; by default any.",
        yaml="outputs", default=(), why=_DECLARED,
    ),
    ModelSetting(
        name="platform", kind=Document("a text of 1 to 100 characters", _is_platform), label="platform",
        help="The platform that the Open Inference Protocol's metadata names; `pytorch` by default.",
        yaml="platform", default="pytorch", why=_DECLARED,
    ),
)  # fmt: skip
