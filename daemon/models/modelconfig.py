"""How one model version is served: what the registration, the archive and the daemon say.

A value given at registration (or set since) wins over `model-config.yaml` in the archive, which
wins over the `models` block of config.properties, which wins over the daemon's default.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import Repr
from typing import Any, TypeVar

import yaml

from daemon.batching.policies import DEFAULT_POLICY, POLICIES
from daemon.config import Config
from daemon.errors import BadRequest, InvalidModel
from daemon.models.limits import TIMEOUTS, check_timeouts, cpus_text, missing_cpus, parse_cpus, parse_memory
from handlers.names import parse_optimizations

T = TypeVar("T")

DEFAULT_BATCH_SIZE = 1
DEFAULT_MAX_DELAY = 0.1  # seconds
MOST = 10**9  # of anything that is counted: more is a mistake, and frames hold no number of any length
MOST_WORKERS = 1024  # of one version: more is a slip of the finger, and each is a process

# What PyYAML raises: for a month 13, an empty `!!int`, a `!!timestamp` of no date, and deep nesting not its own error.
_NOT_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError)

# Features that change who gets which request: serving without them would be wrong, not slow.
_REFUSED = ("sequenceBatching", "continuousBatching", "parallelType", "torchrun", "asyncCommunication")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How a version is served; times in seconds, `retry`, `isolate` and `devices` as in WorkerSpec.

    Attributes:
        record_input: keep the latest request's body in memory; see recorded.py.
        quarantine: requests that end workers run alone, and are refused for a while; see batching/quarantine.py.
        queue_timeout: how long a request may wait in the queue; 0.0 for ever.
        client_timeout: how long it may take, all in all; 0.0 for ever.
        max_memory: bytes that a worker may have; None for any number.
        cpus: processors that its workers may use, by number; empty for all.
        optimize: names of `handlers.names.OPTIMIZATIONS` that are asked for beside those that its
            handler has by default; None if nobody asks.
    """

    batch_size: int
    max_delay: float
    policy: str
    min_workers: int
    max_workers: int
    response_timeout: float
    startup_timeout: float
    queue_jobs: int
    queue_bytes: int
    queue_timeout: float = 0.0
    client_timeout: float = 0.0
    retry: bool | None = None
    isolate: bool | None = None
    devices: Sequence[int] = ()
    record_input: bool = False
    quarantine: bool = True
    optimize: Sequence[str] | None = None
    max_memory: int | None = None
    cpus: Sequence[int] = ()
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)  # setting → who said so


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a registration asks for, or somebody since; None where nobody says anything.

    Attributes:
        workers: workers to start.
        max_workers: workers to have at most, if that is more.
        fallback_workers: workers to start if neither `workers` nor the archive says.
        since: those that were asked for after the registration, with the command: `set` or `scale`.
    """

    batch_size: int | None = None
    max_delay: float | None = None
    policy: str | None = None
    workers: int | None = None
    max_workers: int | None = None
    fallback_workers: int = 0
    response_timeout: float | None = None
    startup_timeout: float | None = None
    queue_jobs: int | None = None
    record_input: bool | None = None
    since: Mapping[str, str] = field(default_factory=dict)
    queue_timeout: float | None = None
    optimize: tuple[str, ...] | None = None
    max_memory: int | None = None
    cpus: tuple[int, ...] | None = None
    quarantine: bool | None = None


# TorchServe's keys that change nothing here; whoever set one should know.
_WITHOUT_EFFECT = ("useJobTicket", "maxRetryTimeoutInSec", "parallelLevel")


def without_effect(document: Mapping[str, Any]) -> list[str]:
    """Name the keys that are set and mean nothing here."""
    return [key for key in _WITHOUT_EFFECT if document.get(key)]


_MOST_MERGED = 1000  # pairs


class _Loader(yaml.SafeLoader):
    """Safe in what it makes, and in how much: merges (`<<`) copy, so that 400 bytes could be a billion pairs."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                nodes = value.value if isinstance(value, yaml.SequenceNode) else [value]
                mappings = [each for each in nodes if isinstance(each, yaml.MappingNode)]
                for mapping in mappings:
                    self.flatten_mapping(mapping)
                if sum(len(mapping.value) for mapping in mappings) > _MOST_MERGED:
                    raise yaml.constructor.ConstructorError(None, None, "it merges too much", key.start_mark)
        super().flatten_mapping(node)


def read_yaml(model_dir: Path, config_file: str | None) -> dict[str, Any]:
    """Read the archive's `model-config.yaml`; an empty dict if it has none.

    Raises:
        InvalidModel: it is not YAML, or not a mapping, or asks for what is not served.
    """
    if config_file is None:
        return {}
    try:
        document = yaml.load((model_dir / Path(config_file).name).read_bytes(), _Loader)
    except _NOT_YAML as error:
        raise InvalidModel(f"`{config_file}` is not YAML: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise InvalidModel(f"`{config_file}` holds a {type(document).__name__}, and should hold a mapping.")
    for key in _REFUSED:
        if document.get(key):
            raise InvalidModel(f"`{config_file}` asks for `{key}`, which tsctl does not serve.")
    return document


class _Said(dict[str, Any]):
    """What the archive says, over what the `models` block says; and who said it."""

    def __init__(self, document: Mapping[str, Any], block: Mapping[str, Any]) -> None:
        self._own = {key for key, value in document.items() if value is not None}
        super().__init__({**block, **{key: document[key] for key in self._own}})

    def source(self, key: str) -> str:
        return "model-config.yaml" if key in self._own else "the models block of config.properties"


def merge(
    wishes: Wishes,
    document: Mapping[str, Any],
    config: Config,
    block: Mapping[str, Any] | None = None,
    *,
    gpus: int = 0,
) -> ModelSettings:
    """Choose each value: registration, then `model-config.yaml`, then the `models` block, then default.

    Args:
        gpus: how many this machine has.

    Raises:
        BadRequest: the registration asks for something impossible.
        InvalidModel: the archive or the block does.
    """
    document = _Said(document, block or {})
    batch_size = _first(wishes.batch_size, _whole(document, "batchSize", 1), DEFAULT_BATCH_SIZE)
    delay_ms = _number(document, "maxBatchDelay")
    client_ms = _number(document, "clientTimeoutInMills")
    workers, max_workers = _workers(wishes, document, config)
    policy = _first(wishes.policy, _word(document, "batching", POLICIES), DEFAULT_POLICY)
    if batch_size < 1:
        raise BadRequest(f"batch_size is {batch_size}, and should be at least 1.")
    check_policy(policy)
    check_workers(max_workers)
    check_timeouts({name: getattr(wishes, name) for name in TIMEOUTS})
    return ModelSettings(
        batch_size=batch_size,
        max_delay=_first(wishes.max_delay, None if delay_ms is None else delay_ms / 1000, DEFAULT_MAX_DELAY),
        policy=policy,
        min_workers=workers,
        max_workers=max_workers,
        response_timeout=_first(
            wishes.response_timeout, _timeout(document, "responseTimeout"), config.response_timeout
        ),
        startup_timeout=_first(wishes.startup_timeout, _timeout(document, "startupTimeout"), config.startup_timeout),
        queue_jobs=_first(wishes.queue_jobs, _whole(document, "jobQueueSize", 1), config.queue_jobs),
        queue_bytes=config.queue_bytes,
        queue_timeout=_first(wishes.queue_timeout, _number(document, "queueTimeout"), 0.0),
        client_timeout=(client_ms or 0.0) / 1000,
        retry=_boolean(document, "retry"),
        isolate=_boolean(document, "isolate"),
        devices=_devices(document, gpus),
        record_input=_first(wishes.record_input, _boolean(document, "recordInput"), False),
        quarantine=_first(wishes.quarantine, _boolean(document, "quarantine"), True),
        optimize=wishes.optimize if wishes.optimize is not None else _optimizations(document),
        max_memory=wishes.max_memory or _parsed(document, "maxMemory", parse_memory),
        cpus=_usable(wishes.cpus or _parsed(document, "cpus", parse_cpus) or ()),
        origins=_origins(wishes, document),
    )


def wishes_of(values: Mapping[str, Any]) -> Wishes:
    """Read what TorchServe's snapshot says of a version: it had been asked for at registering, or since.

    Raises:
        InvalidModel: a value is not what it should be.
    """
    said = _Said({}, values)
    delay_ms = _number(said, "maxBatchDelay")
    return Wishes(
        batch_size=_whole(said, "batchSize", 1),
        max_delay=None if delay_ms is None else delay_ms / 1000,
        workers=_whole(said, "minWorkers", 0),
        max_workers=_whole(said, "maxWorkers", 0),
        response_timeout=_timeout(said, "responseTimeout"),
        startup_timeout=_timeout(said, "startupTimeout"),
    )


# Each setting of a model: its field in Wishes, if a registration may ask for it, and its key in the archive.
_KEYS: dict[str, tuple[str | None, str]] = {
    "batch_size": ("batch_size", "batchSize"),
    "max_delay": ("max_delay", "maxBatchDelay"),
    "policy": ("policy", "batching"),
    "workers": ("workers", "minWorkers"),
    "response_timeout": ("response_timeout", "responseTimeout"),
    "startup_timeout": ("startup_timeout", "startupTimeout"),
    "queue_jobs": ("queue_jobs", "jobQueueSize"),
    "queue_timeout": ("queue_timeout", "queueTimeout"),
    "client_timeout": (None, "clientTimeoutInMills"),
    "retry": (None, "retry"),
    "isolate": (None, "isolate"),
    "record_input": ("record_input", "recordInput"),
    "quarantine": ("quarantine", "quarantine"),
    "optimize": ("optimize", "optimize"),
    "max_memory": ("max_memory", "maxMemory"),
    "cpus": ("cpus", "cpus"),
}


def _origins(wishes: Wishes, document: _Said) -> dict[str, str]:
    """Say where each value came from: "register", "set", "scale", the archive, the block or "default"."""
    origins = {}
    for name, (wish, key) in _KEYS.items():
        said = document.get(key) is not None and (name != "workers" or document[key])  # no workers says nothing
        asked = wish is not None and getattr(wishes, wish) is not None
        origins[name] = wishes.since.get(name, "register") if asked else document.source(key) if said else "default"
    return origins


def check_policy(policy: str) -> None:
    """Raises: BadRequest, if there is no such collector."""
    if policy not in POLICIES:
        raise BadRequest(f"batching is `{policy}`, and should be one of {', '.join(POLICIES)}.")


def check_workers(count: int) -> None:
    """Raises: BadRequest, if nobody can mean so many."""
    if count > MOST_WORKERS:
        raise BadRequest(f"{count} workers are wanted, and a model version may have {MOST_WORKERS}.")


def _workers(wishes: Wishes, document: Mapping[str, Any], config: Config) -> tuple[int, int]:
    if wishes.workers is not None:
        return wishes.workers, max(wishes.workers, wishes.max_workers or 0)
    least, most = _whole(document, "minWorkers", 0), _whole(document, "maxWorkers", 0)
    if least:
        return least, max(least, most or 0)
    usual = config.default_workers or wishes.fallback_workers  # 0 says nothing, as in TorchServe
    return usual, usual


def _devices(document: Mapping[str, Any], gpus: int) -> Sequence[int]:
    """The GPUs that the archive may use: those it names, else all; none where there are none."""
    kind = _word(document, "deviceType", ("cpu", "gpu"))
    ids = _checked(
        document,
        "deviceIds",
        lambda value: isinstance(value, list) and all(type(each) is int and each >= 0 for each in value),
        "a list of whole numbers from 0",
    )
    if kind == "cpu" or not gpus:
        return ()
    if ids and max(ids) >= gpus:
        raise InvalidModel(f"model-config.yaml: `deviceIds` is {ids}, and the GPUs here are 0 to {gpus - 1}.")
    return tuple(ids or range(gpus))


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def _checked(document: Mapping[str, Any], key: str, good: Callable[[Any], bool], what: str) -> Any:
    value = document.get(key)
    if value is not None and not good(value):
        source = document.source(key) if isinstance(document, _Said) else "model-config.yaml"
        raise InvalidModel(f"{source}: `{key}` is `{_shown(value)}`, and should be {what}.")
    return value


# By aliases, 300 bytes of YAML are a list of a billion members: what is shown of a value has an end.
_short = Repr()
_short.maxlevel, _short.maxlist, _short.maxdict, _short.maxset, _short.maxstring = 3, 10, 10, 10, 100
_LONGEST = 200  # characters


def _shown(value: Any) -> str:
    """Write a value into a sentence, shortened."""
    if isinstance(value, int) and abs(value) > 10**100:
        return f"a number of {value.bit_length()} bits"  # Python does not even write one of 4300 digits
    try:
        shown = value if isinstance(value, str) else _short.repr(value)
    except ValueError:  # it holds such a number
        return f"a {type(value).__name__}"
    return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"


def _whole(document: Mapping[str, Any], key: str, least: int) -> int | None:
    what = f"a whole number of at least {least}"
    result: int | None = _checked(document, key, lambda value: type(value) is int and value >= least, what)
    _checked(document, key, lambda value: value <= MOST, f"at most {MOST}")
    return result


def _number(document: Mapping[str, Any], key: str) -> float | None:
    what = "a number from 0 to 1e9"  # an endless time-out or delay is a mistake, and no timer takes it
    good = _checked(document, key, lambda value: type(value) in (int, float) and 0 <= value <= 1e9, what)
    return None if good is None else float(good)


def _timeout(document: Mapping[str, Any], key: str) -> float | None:
    _checked(document, key, lambda value: value != 0, "more than 0 seconds; without one the daemon's own counts")
    return _number(document, key)


def _boolean(document: Mapping[str, Any], key: str) -> bool | None:
    result: bool | None = _checked(document, key, lambda value: type(value) is bool, "true or false")
    return result


def _optimizations(document: Mapping[str, Any]) -> tuple[str, ...] | None:
    return _parsed(document, "optimize", parse_optimizations)


def _parsed(document: Mapping[str, Any], key: str, parse: Callable[[Any], T]) -> T | None:
    """Read a value; `parse` raises ValueError with what it should be."""
    value = document.get(key)
    if value is None:
        return None
    source = document.source(key) if isinstance(document, _Said) else "model-config.yaml"
    try:
        return parse(value)
    except ValueError as error:
        raise InvalidModel(f"{source}: `{key}` is `{_shown(value)}`, and should be {error}.") from None


def _usable(cpus: tuple[int, ...]) -> tuple[int, ...]:
    usable = missing_cpus(cpus)
    if usable is not None:
        raise BadRequest(f"cpus is {cpus_text(cpus)}, and the daemon may use {usable}.")
    return cpus


def _word(document: Mapping[str, Any], key: str, words: tuple[str, ...]) -> str | None:
    result: str | None = _checked(document, key, lambda value: value in words, f"one of {', '.join(words)}")
    return result
