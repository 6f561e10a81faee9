"""The server of tsctl: the map of the house, and its vocabulary.

Three rooms, each its own process at run time; they exchange bytes, never shared objects:

        tsctl  ─ daemon.paths, *settings, marfile ─▶  daemon  ─ handlers.wire, names ─▶  handlers
   command line,                 event loop, HTTP,                     worker process,
   blocking, light               registry, batches, pools              torch, user code
        │                             ▲   │                                   ▲
        └──── HTTP on a Unix socket ──┘   └──── frames on a socketpair ───────┘

All are imported from within `tsctl`, as `tsctl.daemon` and `tsctl.handlers`, which are links in git: the names `daemon`
and `handlers` are a user's own. Imports go left to right, through the named modules only (tests/test_imports.py). The
daemon never imports torch, so it starts in well under a second; the command line imports neither torch nor asyncio.

    __main__  server/  arguments → Config → assembly → serve → shutdown
    paths  settings  model_settings/  targets/  marfile
                       the doors of the command line: where files are, the tables of settings, what can be served
    core/              floor 1: errors, job, arena (memory shared with workers), clock, logs, states, steps
      machine/         processes, memory, cgroups and GPUs, as the kernel and NVML tell
      texts/           JSON, whatever is in its texts
    events/            what an operator must not miss: one table of kinds, a ring, a file
    config/            values with their origins, TorchServe's config.properties, addresses, tokens
    http/              bytes ↔ requests and answers; knows no models
      parsing/         heads and bodies, and early refusals
      bounds/          budgets that all connections share, and a connection's part in them
      states/          the machines of a connection and of its receiver
    metrics/           counters and measurements
    workers/           engines, workers, pools
      processes/       how worker processes are made (templates, exec), their output, their end
      rows/            workers that run requests row by row: their places, and what becomes late
    batching/          queue and dispatcher: when a job is sent, and together with which others
      policies/        `auto`, `fixed`, `greedy`: when a batch is due
      traffic/         learned from the traffic: batch times, arrivals, callers
    models/            the registered models
      archives/        their archives, from download to unpacked directory
      registering/     rules of a registration: the settings that it keeps, the names that it may take
      persistence/     the snapshot, and a start from it
      routing/         which version answers a request that names none
      reporting/       from what pools and dispatchers notice to events
    api/               the routes; authorisation
      inference/       predictions, forms
      management/      TorchServe's management API; the control socket's documents
    lifecycle/         the process: sockets and locks, the two ways into service, the service manager, its end
      upgrade/         its replacement: old and new
    extension          the seam between the core and the shelf: what a capability may add to a daemon
    declarations       what a capability adds to tables, and says of its protocol and its fields
    extensions/        the shelf: a folder for each capability that the core does not know, and for what several of
                       them are written with; its first line says which
    server/            the parts of a daemon, wired; the list of extensions
    tools/             programs of their own, never imported: `tsctl check`, `tune`

tests/test_imports.py is the table of who may import whom; tests/test_house.py measures that there are few rooms,
few floors and no circle. Programs that measure, compare and attack all of this are in tests/lab.

Six walks

1. A prediction: http.connection → parsing.parser → http.router → inference.routes → routing.steering → submission →
   model.submit → queue → dispatcher._pump asks the collector → Batch → worker.predict → frame →
   runtime.runtime → the user's handle(data, context) → one Reply for each job → frame → workers.local →
   dispatcher.ended → job.answer → exchange → bytes. Only two things wait: the job in the queue, the batch in
   the worker. A client that leaves takes its queued job with it.
2. A command: a verb's file → tsctl.client → control socket → management.routes → registrar or
   registry → pool.scale → reconcile → plan → engine → answer → tsctl.render.
3. A worker's life: slot.py draws the place, state.py the worker in it. processes.templates.tree chooses
   the warmest template → an order → handlers.template forks → handlers.worker.converse: frames. Its parent is
   the daemon; death is a pidfd.
4. An archive: registrar.register → opening.open: download.locate → archives.unpack (in a thread, into a directory
   named by its content) → manifest → build (settings) → LiveVersions.add → workers → ledger.save (the snapshot is
   on the disk) → answer. A failure on the way leaves nothing behind.
   Replacing a version in service: … → build → workers beside it → LiveVersions.switch → ledger.save →
   answer; the old one finishes its jobs, and retires (replace.py, retirement.py).
5. A cold start (lifecycle.boot): snapshot_file reads the snapshot → startup.plan: restore, load, forget →
   restore.restore from the directories that were kept (listed as loading) → the daemon listens → archives that
   must be unpacked. A list of models wins over the snapshot; flags are never in it.
6. An upgrade: management.upgrade → upgrade.old: the gate (persistence.ledger) closes, the snapshot is written, memory
   suffices → upgrade.successor starts `python -m tsctl.daemon --inherit N` with our sockets and locks → there
   boot.Takeover loads the models of the snapshot (upgrade.new), and all workers are ready → the new daemon
   asks to take over, the old one agrees → the new one listens, and opens its gate → shutdown.wind_down in the
   old one; in the foreground upgrade.shim stays.

Bounds, and where they are: connections (bounds.rejection), bodies being received (bounds.receiving), a version's
queue in jobs and bytes (batching.queue), a worker's memory and processors (processes.memory_limit,
model_settings). A log that cannot be written loses its lines (core.log_file). Each excess is reported.

Decisions are synchronous functions of facts with the time as an argument: collectors, the pool's
plan and the registry have no asyncio and no clock, so that the same objects run in production, in
tests on a fake clock, and in simulations. Time inside is float seconds on the monotonic clock.

Vocabulary

model: a name · version: one registered archive of a model · archive: the .mar file · manifest: the
archive's own description · model store: the directory of archives · registry: the models registered
now · snapshot: the registry on disk · list: the models to load at the start · handler: the user's
code · request: one HTTP request · exchange: a request and the answer owed · endpoint: a TCP address
and its services · job: a request waiting for a model's answer · queue: the jobs of one
version · collector: decides when a batch is due · dispatcher: sends batches to workers · batch: jobs run
together · row: a job that a worker runs on its own, beside others · sequence: jobs with a common id, whose state one
worker keeps · worker: one process with one version loaded · slot: a worker's place in the pool · engine:
starts workers · template: a process from which workers are forked · bridge: the process that holds the workers on a
cluster's nodes · frame: one message between the daemon
and a worker · reply: the answer to one job · place: the sockets and locks that make a process the daemon
for its clients · upgrade: handing the place over to a new daemon · stand-in: the process that remains of a
replaced, supervised daemon · isolation: rows run alone after the handler raised for their
batch · optimisation: a way to run a model faster, checked when it is loaded · drift: how much it changes
the model's answers · replacement: another archive that is to take a version's place · route: the shares of a model's
versions in its requests · shadow: a version that gets copies of requests · rollout: a new version takes over
step by step.
"""
