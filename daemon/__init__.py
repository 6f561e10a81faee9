"""The server of tsctl: the map of the house, and its vocabulary.

Three rooms, each its own process at run time; they exchange bytes, never shared objects:

        tsctl  ─ daemon.paths, *settings, marfile ─▶  daemon  ─ handlers.wire, names ─▶  handlers
   command line,                 event loop, HTTP,                     worker process,
   blocking, light               registry, batches, pools              torch, user code
        │                             ▲   │                                   ▲
        └──── HTTP on a Unix socket ──┘   └──── frames on a socketpair ───────┘

Imports go left to right, through the named modules only (tests/test_imports.py). The daemon never
imports torch, so it starts in well under a second; the command line imports neither torch nor asyncio.

    __main__  server       arguments → Config → listen → serve
    ending                 stop in order: by a signal, or because another daemon has taken over
    config  settings       every setting: flag, environment name, key of config.properties, default
    model_settings         every setting of a model: its names at each border, limits, default, when a change counts
    tsconfig environment   TorchServe's config.properties; the environment of workers
    paths  sockets         where files are; listening sockets and the lock
    place                  all of these together: taken, inherited, handed over, left
    logs  access  status   log files; a line for each request; the daemon's status documents
    endpoints  tokens      the TCP addresses and the services at each; the bearer tokens
    guards                 the checks at an address, before a body is read and before a route is run
    marfile                the archive's manifest, and writing archives
    job                    Job, Batch, Outcome, Reply
    arena                  memory shared with the workers, for large bodies
    clock  errors          time as an object; the errors that clients see
    compiling              the wheel's build hook: compiles the path of a request; never imported
    http/                  bytes ↔ requests and answers; independent of models
    api/                   the routes: predictions, TorchServe's management API; authorisation
    models/                the registered models and their archives
    batching/              when a job is dispatched, and together with which others
    upgrade/               replacing a running daemon: steps, giving (the old one), taking (the new one)
    metrics/               counters and measurements, and their text for Prometheus
    workers/               engines, workers, pools
    workers/processes/     how worker processes are made (templates, exec), their output, their end
    simulate/  tune/       processes of their own: policies compared on a virtual clock; `tsctl tune`
    simulate/faults/       all of this on a virtual event loop, under faults drawn from seeds: a seed is a run

    may import       http: job errors clock arena · api: http models metrics, the reasons in batching.collector,
                     upgrade.asked · upgrade: models, workers.devices ·
                     models: batching workers metrics · batching: the interface workers.engine, metrics ·
                     workers: job errors clock arena handlers.wire, orders, names · metrics: job errors clock
                     handlers.wire

Six walks

1. A prediction: http.receiver → http.protocol → http.router → api.inference → registry.find →
   model.submit → queue → dispatcher._pump asks the collector → Batch → worker.predict → frame →
   handlers.runtime.runtime → the user's handle(data, context) → one Reply for each job → bytes. Only two
   things wait: the job in the queue, the batch in the worker. A client that leaves takes its queued
   job with it.
2. A command: a verb's file → tsctl.client → control socket → api.management → registration or
   registry → pool.scale → reconcile → plan → engine → answer → tsctl.render.
3. A worker's life: slot.py draws the place, state.py the worker in it. processes.templates chooses
   the warmest template → an order → handlers.template forks → handlers.worker.converse: frames. Its
   parent is the daemon; death is a pidfd.
4. An archive: store.locate → archive.unpack (in a thread, into a directory named by its content) →
   manifest → making (modelconfig) → registry.add → workers → memory.save (the snapshot is on the disk) →
   answer. A failure on the way leaves nothing behind.
   Replacing a version in service: … → making → workers beside it → registry.replace → memory.save →
   answer; the old one finishes its jobs, and retires (models/replace.py, models/retirement.py).
5. A start: memory reads the snapshot → startup.plan: restore, load, forget → restoring.restore
   from the directories that were kept (listed as loading) → the daemon listens → archives that must be
   unpacked. A list of models wins over the snapshot; flags are never in it.
6. An upgrade: api.upgrading → upgrade.giving: the gate (models.gate) closes, the snapshot is written, memory
   suffices → upgrade.successor starts `python -m daemon --inherit N` with our sockets and locks → there
   upgrade.taking loads the models of the snapshot, and all workers are ready → the new daemon asks to take over,
   the old one agrees → the new one listens, and opens its gate → ending.wind_down in the old one; in the
   foreground upgrade.stand_in stays.

Bounds, and where they are: connections (http.full), bodies being received (http.receiving), a version's
queue in jobs and bytes (batching.queue), a worker's memory and processors (workers.processes.memory,
model_settings). A log that cannot be written loses its lines (logs). Each excess is reported.

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
together · worker: one process with one version loaded · slot: a worker's place in the pool · engine:
starts workers · template: a process from which workers are forked · frame: one message between the daemon
and a worker · reply: the answer to one job · place: the sockets and locks that make a process the daemon
for its clients · upgrade: handing the place over to a new daemon · stand-in: the process that remains of a
replaced, supervised daemon · isolation: rows run alone after the handler raised for their
batch · optimisation: a way to run a model faster, checked when it is loaded · drift: how much it changes
the model's answers · replacement: another archive that is to take a version's place.
"""
