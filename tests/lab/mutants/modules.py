"""The modules, the tests of `make test` that reach each, and the mutants that change nothing that anybody can see."""

_BATCHING = ("tests/batching", "tests/workers/rows", "tests/api/inference")
_WORKERS = ("tests/workers", "tests/batching")
_HTTP = ("tests/http", "tests/api/inference")

# The module → its own tests, which run first, and those that reach it.
MODULES: dict[str, tuple[str, ...]] = {
    "daemon.batching.dispatcher": ("tests/batching/test_dispatcher.py", *_BATCHING),
    "daemon.batching.queue": ("tests/batching/test_queue.py", *_BATCHING),
    "daemon.batching.policies.auto": ("tests/batching/policies", *_BATCHING),
    "daemon.batching.expiry": ("tests/batching/test_expiry.py", *_BATCHING),
    "daemon.workers.inflight": ("tests/workers/test_inflight.py", *_WORKERS),
    "daemon.core.arena": ("tests/core/test_arena.py", *_WORKERS),
    "daemon.workers.slot": ("tests/workers/test_slot.py", *_WORKERS),
    "daemon.workers.pool": ("tests/workers/test_pool.py", *_WORKERS),
    "daemon.http.parsing.parser": ("tests/http/parsing", *_HTTP),
    "daemon.http.parsing.head_cache": ("tests/http/parsing", *_HTTP),
    "daemon.http.exchange": ("tests/http/test_exchange.py", *_HTTP),
    "daemon.models.registrar": (
        "tests/models/test_registrar.py",
        "tests/models",
        "tests/api/management",
        "tests/lifecycle",
    ),
}

# The module → a mutant's text → why no test can tell it from the module.
EQUIVALENT: dict[str, dict[str, str]] = {}
