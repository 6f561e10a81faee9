"""The modules, the tests of `make test` that reach each, and the mutants that change nothing that anybody can see."""

_BATCHING = ("tests/batching", "tests/workers/rows", "tests/api/inference", "tests/lab/simulation")
_WORKERS = ("tests/workers", "tests/batching", "tests/lab/simulation")
_HTTP = ("tests/http", "tests/api/inference", "tests/lab/lives", "tests/lab/fuzz/test_targets.py")

# The module → its own tests, which run first, and those that reach it.
MODULES: dict[str, tuple[str, ...]] = {
    "tsctl.daemon.batching.dispatcher": (
        "tests/batching/test_dispatcher.py",
        "tests/models/test_prediction_errors.py",  # what operators are told of
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

# The module → a mutant's text → why no test can tell it from the module.
_NO_DEADLINE = "without a deadline there is nothing to add or discard: `JobDeadlines` looks, too"
EQUIVALENT: dict[str, dict[str, str]] = {
    "tsctl.daemon.batching.dispatcher": {
        "_end: if job.budget is not None → if True": _NO_DEADLINE,
        "_send: if job.budget is not None → if True": _NO_DEADLINE,
        "_pump: if self.expiry.watching → if True": "without a deadline nothing is late, and no alarm is set",
        "_fears: return job.apart is not None → return None": "without quarantine no job is kept apart",
        "close: self._timer = None → pass": "a timer that is cancelled is cancelled again",
        "_size_ahead: head, size = self._queue.head, self._traffic.enough(len(self._queue), 0): 0 → 1": (
            "beside one idle worker as beside none"
        ),
        "_match: if decision.until <= now:: decision.until <= now → decision.until < now": (
            "a timer of no seconds rings in the loop's next turn, as what is to be called soon"
        ),
    },
    "tsctl.daemon.batching.queue": {
        "_park: if job.budget is not None → if True": _NO_DEADLINE,
        "_add: if job.budget is not None → if True": _NO_DEADLINE,
        "_left: if job.budget is not None → if True": _NO_DEADLINE,
        "take_batch: if len(jobs) < count:: len(jobs) < count → len(jobs) <= count": "no job of low priority is added",
        "next: if waiting < math.inf → if True": "inf less some seconds is inf",
        "next: if self.queue_timeout < math.inf:: self.queue_timeout < math.inf → self.queue_timeout <= math.inf": (
            "a time and inf are inf"
        ),
        "_overdue: if self.queue_timeout == math.inf → if False": "no time and inf are in the past",
    },
    "tsctl.daemon.batching.policies.auto": {
        "__init__: self._parts = 0  # over how many workers the clients are split; 0 while the clients are unknown …:"
        " 0 → 1": "each decision plans anew",
        "__init__: self._clients = 0 → pass": "it is read where there are parts, which come with it",
        "_send: self._return_due = 0.0: 0.0 → 1.0": "the clock is past its first second",
        "_best: return 0.0 → return None": "both are false, and nobody reckons with it",
        "__init__: self._return_due = 0.0  # until when the last batch's clients are awaited: 0.0 → 1.0": (
            "nobody is awaited before a batch was sent, which sets it to 0.0"
        ),
        "__init__: self._found_for = (0, 0, 0)  # … for so many clients, workers and changes of the learned times:"
        " 0 → 1": "there are two workers at least where it is read",
        "decide: if facts.idle + traffic.busy > 1 or self._parts:: facts.idle + traffic.busy > 1"
        " → facts.idle + traffic.busy >= 1": "the plan for one worker is the one that is there",
        "_plan: self._found_for = found_for → pass": "what was found is found anew, and is the same",
        "_plan: if workers > 1 and self._halves is not None:: workers > 1 → workers >= 1": (
            "halves were forgotten when there were several workers"
        ),
        "_best: if waited >= gain → if False": "the value of a longer wait is not above 0",
    },
    "tsctl.daemon.workers.inflight": {
        "unstarted: if len(self._batches) < 2 and self.overdue is None → if False": "an only batch has started",
        "_end_leases: if kept or self._kept → if True": "nothing was kept, and nothing is",
    },
    "tsctl.daemon.workers.pool": {
        "kill: self.reconcile(0.0): 0.0 → 1.0": "whoever has time to leave is killed at once",
    },
    "tsctl.daemon.core.arena": {
        "add_piece: if self._lease is not None → if True": "without a lease the view is empty, and so is the piece",
        "payload: if self.size < self._most → if True": "to cut a place to its length changes nothing",
    },
    "tsctl.daemon.http.parsing.parser": {
        "feed: elif self.state == BODY and self.body.count + len(data) <= self.body.length:: self.state == BODY"
        " → self.state != BODY": "what is a part of a body alone is taken apart, to the same end",
        '_take_known: self._request = known.request_with(digits, b"", body.began, 0.0): 0.0 → 1.0': (
            "it is set when the request is complete"
        ),
        "on_header: self._silent = 0: 0 → 1": "so long a line is over the limit of the head's bytes, too",
    },
    "tsctl.daemon.http.parsing.head": {
        "__init__: self.id = \"\": self.id = '' → pass": "the first head sets it before anybody reads it",
        "read: if self.origin is not None → if True": "nobody reads the host of a request without an origin",
        "remember: known.kind = request.content_type → pass": "it is found among the headers each time",
        "beginning_of: if data.startswith(self.whole) → if False": "the digits that follow are found to be the same",
        "beginning_of: if end < 0:: end < 0 → end <= 0": "the line's end is behind the header's name",
        "headers_of: if digits == self.digits → if False": "a copy of the headers gets the length that it has",
        'cached_head_of: return None if framing else CachedHead(head, b"", b"0", request, 0): 0 → 1': (
            "without a length its place is not read"
        ),
        "expect: short = 0 <= ends - begins <= LONGEST and self._unlike < PATIENCE: 0 → 1": "no head is empty",
        'remember: known = request.again(request.headers, b"", named, 0.0, 0.0): 0.0 → 1.0': (
            "each request with a known head has times of its own"
        ),
    },
    "tsctl.daemon.http.exchange": {
        "write_all: if sum(map(len, pieces)) <= JOINED_BODY → if False": "a transport joins pieces, too",
        "_write: if exchange.size <= PIECE → if False": "all that fits is taken in one go, to the same end",
        "_hold: if more < 0:: more < 0 → more <= 0": "no bytes are released",
    },
    "tsctl.daemon.models.registrar": {
        "renew: if source.unpacked is not None → if True": "a use of no directory is counted, and never ended",
        "load: elif not model.pool.ready:: if not model.pool.ready → if True": "who is ready is wanted already",
    },
}
