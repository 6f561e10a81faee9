"""The capabilities of the daemon that one could serve without: where each lives, and the words that name it.

The words are regular expressions over names, with their dots, and over strings. Each is chosen so that it finds nothing
else: `route` alone is also a path of HTTP, `sequence` a number that rises, `trace` a list of arrivals.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capability:
    """A row of the table.

    Attributes:
        name: as its folder on the shelf, daemon/extensions/NAME.
        words: name it.
        places: folders and files that are its own, beside that folder: the beginnings of their names.
        elsewhere: where the words mean another thing, likewise.
    """

    name: str
    words: re.Pattern[str]
    places: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


def _capability(name: str, words: str, *places: str, elsewhere: tuple[str, ...] = ()) -> Capability:
    return Capability(name, re.compile(words), places, elsewhere)


CAPABILITIES = (
    _capability(
        "routing",
        r"\brouting\b(?!\.rollout)|\brouted\b|[Ss]teer|\bRoutes\b|RouteChanges|RoutedVersion|tsctl_route_|regist(?:ry|rar)\.routes",
        "daemon/models/routing/",
        "daemon/api/management/routing/__init__.py",
        "daemon/api/management/routing/route.py",
    ),
    _capability(
        "rollouts", r"(?i:rollout)|\bpromote", "daemon/models/rollouts/", "daemon/api/management/routing/rollout.py"
    ),
    _capability("shadowing", r"(?i:shadow)|\b[Mm]irror"),
    _capability(
        "scaling",
        r"(?i:autoscal)|\bScaling[A-Z]|models\.scaling|extensions\.scaling",
        "daemon/models/scaling/",
        "daemon/api/observing/scaling.py",
    ),
    _capability(
        "residency",
        r"[Rr]esiden(?:ce|cy)|\bresident\b|(?i:on_demand)|[Ss]taffing|models_memory|model_keep_alive|keepAlive",
    ),
    _capability("optimizing", r"(?i:optimi[sz](?!m))|\b[Tt]rials?\b|Trial[A-Z]|trials_|\bdrift\b"),
    _capability(
        "sequences",
        r"\b[Ss]equences\b|Sequence(?:Headers|Broken|Full|Dispatcher)|max_sequences|max(?:Num|)Sequence|job\.sequence"
        r"|sequence_(?:headers?|idle|timeout|jobs|id|start|end)\b|sequence(?:Timeout|MaxIdle|Batching)",
        elsewhere=("daemon/api/management/describe.py",),  # TorchServe shows these of each version
    ),
    _capability("quarantine", r"(?i:quarantin)|\b_?[Ss]uspects?\b|[Ss]creening"),
    _capability("grouping", r"\bgrouping\b|LengthGrouping|group_by_length|groupByLength"),
    _capability(
        "fitting", r"extensions\.fitting|Fitting[A-Z]|\bfitting_of\b|batch-(?:capped|raised)|tsctl_batches_too_large"
    ),
    _capability("history", r"extensions\.history|tsctl/history|History[A-Z]"),
    _capability("verdict", r"extensions\.verdict|Verdict[A-Z]", elsewhere=("tsctl/doctor/", "tsctl/tuning/")),
    _capability("keys", r"(?i:known_?client)|keys_file|keys-"),
    _capability("grpc", r"(?i:grpc)"),
    _capability("cache", r"settings\.cache\b|AnswerCache|CacheService|cache-full|tsctl_cache_"),
    _capability("oip", r"\boip|\bOip|\bOIP"),
    _capability("openai", r"(?i:openai)|\bchat\b"),
    _capability(
        "tracing",
        r"\btracing\b|\b_?tracer\b|Tracer|\bTracing\b|TraceExport|TraceContext|JobTrace|\b[Tt]races\b"
        r"|job\.trace\b|trace_(?:endpoint|sample|spans)|(?i:traceparent|tracestate)|\botlp\b",
        elsewhere=("daemon/core/fingerprint.py",),  # headers that differ from request to request
    ),
    _capability(
        "torchserve_logs",
        r"(?i:log4j)|torchserve_logs|TorchServeLogs|MetricLog|metric_log|(?:LOG|METRICS)_LOCATION|config\.log_files",
        "daemon/api/torchserve_logs.py",
        "daemon/api/observing/periodic_metrics.py",
        "daemon/config/log4j.py",
        "daemon/config/log_files.py",
    ),
    _capability("ray", r"\b[Rr]ay\b|ray_address|\bRAY(?:_|\b)|RayEngine|(?:parse|check)_cluster"),
    _capability(
        "ranks",
        r"\branks\b|\bRanks\b|[Rr]ank_?[Ll]ost|parallel(?:_of|_type|_level|Type|Level)",
        elsewhere=("daemon/api/management/describe.py",),  # TorchServe shows these of each version
    ),
    _capability("recording", r"record_?[Ii]nput|record-input|\.recorded\b|\bRECORDED\b|model\.record\b"),
    _capability(
        "upgrade",
        r"(?i:upgrad)(?!e-strategy)|[Pp]redecessor|[Ss]uccessor|[Ii]nherit(?!able)|[Tt]akeover",
        "daemon/lifecycle/upgrade/",
        "daemon/api/management/upgrade.py",
        "daemon/server/upgrading.py",
        elsewhere=("daemon/http/parsing/",),  # HTTP's header `upgrade`
    ),
    _capability("console", r"(?i:console)"),
)
