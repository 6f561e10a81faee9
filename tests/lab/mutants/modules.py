"""The modules, the tests of `make test` that reach each, and the mutants that change nothing (equivalent.yaml)."""

from pathlib import Path

import yaml

_BATCHING = ("tests/batching", "tests/workers/rows", "tests/api/inference", "tests/lab/simulation")
_WORKERS = ("tests/workers", "tests/batching", "tests/lab/simulation")
_HTTP = ("tests/http", "tests/api/inference", "tests/lab/lives", "tests/lab/fuzz/test_targets.py")

# The module → its own tests, which run first, and those that reach it.
MODULES: dict[str, tuple[str, ...]] = {
    "tsctl.daemon.batching.dispatcher": (
        "tests/batching/test_dispatcher.py",
        "tests/models/test_prediction_errors.py",  # what operators are told of
        "tests/metrics/test_judged.py",
        "tests/extensions/tracing/test_tracer.py",
        "tests/extensions/quarantine",
        *_BATCHING,
    ),
    "tsctl.daemon.batching.queue": ("tests/batching/test_queue.py", "tests/batching/test_expiry.py", *_BATCHING),
    "tsctl.daemon.batching.policies.auto": ("tests/batching/policies", *_BATCHING),
    "tsctl.daemon.workers.inflight": ("tests/workers/test_inflight.py", *_WORKERS),
    "tsctl.daemon.core.arena": ("tests/core/test_arena.py", "tests/http/test_large_bodies.py", *_WORKERS),
    "tsctl.daemon.workers.slot": ("tests/workers/test_slot.py", *_WORKERS),
    "tsctl.daemon.workers.pool": ("tests/workers/test_pool.py", "tests/models/test_scenarios.py", *_WORKERS),
    "tsctl.daemon.http.parsing.parser": ("tests/http/parsing/test_parser.py", *_HTTP),
    "tsctl.daemon.http.parsing.head": ("tests/http/parsing/test_head_cache.py", *_HTTP),
    "tsctl.daemon.http.exchange": ("tests/http/test_exchange.py", *_HTTP),
    "tsctl.daemon.models.registrar": (
        "tests/models/test_registrar.py",
        "tests/models",
        "tests/api/management",
        "tests/api/test_conversations.py",
        "tests/extensions/residency",
        "tests/lifecycle",
    ),
}

EQUIVALENT: dict[str, dict[str, str]] = yaml.safe_load(Path(__file__).with_name("equivalent.yaml").read_text())
