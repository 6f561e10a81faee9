"""The server of tsctl: the map of the house, and its words.

Three rooms, each its own process at run time; between them there are bytes, never shared objects:

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
    tsconfig environment   TorchServe's config.properties; what workers find in their environment
    paths  sockets         where files are; listening sockets and the lock
    place                  all of these together: taken, inherited, handed over, left
    logs  access  status   log files; a line for each request; what the daemon says of itself
    endpoints  tokens      the TCP addresses and what is served at each; the bearer tokens
    guards                 the checks at an address, before a body is read and before a route is run
    marfile                the archive's manifest, and writing archives
    job                    Job, Batch, Outcome, Reply: what travels
    arena                  memory shared with the workers, for large bodies
    clock  errors          time as an object; what clients are told
    compiling              the wheel's build hook: what every request passes through, compiled; nobody imports it
    http/                  bytes ↔ requests and answers; knows no models
    api/                   the routes: predictions, TorchServe's management API; who may ask
    models/                what is served and where it came from
    batching/              when and with whom a job travels
    upgrade/               replacing a running daemon: steps, giving (the old one), taking (the new one)
    metrics/               what is counted and measured, and its text for Prometheus
    workers/               who does the work: engines, workers, pools
    workers/processes/     where worker processes come from (templates, exec), what they print, how they end
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
   handlers.runtime → the user's handle(data, context) → one Reply for each job → bytes. Only two
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
   To replace a version that serves: … → making → workers beside it → registry.replace → memory.save →
   answer; the old one finishes what it has, and retires (replacing.py, retiring.py).
5. A start: memory reads the snapshot → startup.plan: restore, load, forget → restoring.restore
   from the directories that were kept (listed as loading) → the daemon listens → what must be
   unpacked. A list of models wins over the snapshot; flags are never in it.
6. An upgrade: api.upgrading → upgrade.giving: the gate (models.gate) closes, the snapshot is written, memory
   suffices → upgrade.successor starts `python -m daemon --inherit N` with our sockets and locks → there
   upgrade.taking loads what the snapshot names, and all workers are ready → it asks, we give the place →
   it listens, and opens its gate → ending.wind_down here; in the foreground upgrade.stand_in stays.

What is bounded, and where: connections (http.full), bodies on their way (http.receiving), a version's
queue in jobs and bytes (batching.queue), a worker's memory and processors (workers.processes.memory,
model_settings). A log that cannot be written costs its lines (logs). Past a bound somebody is told.

Decisions are synchronous functions of facts with the time as an argument: collectors, the pool's
plan and the registry know no asyncio and no clock, so that the same objects run in production, in
tests on a fake clock, and in simulations. Time inside is float seconds on the monotonic clock.

Words

model: a name · version: one registered archive of a model · archive: the .mar file · manifest: what
it says about itself · model store: the directory archives come from · registry: what is registered
now · snapshot: the registry on disk · list: the models to load at the start · handler: the user's
code · request: what HTTP brought · exchange: a request and the answer owed · endpoint: a TCP address,
and what is served there · job: a request waiting for a model's answer · queue: the jobs of one
version · collector: decides when a batch is due · dispatcher: hands it over · batch: jobs that travel
together · worker: one process with one version loaded · slot: a worker's place in the pool · engine:
where workers live · template: a process that workers are forked from · frame: one message on the
wire · reply: the answer to one job · place: what makes a process the daemon that
clients find · upgrade: giving it to a new daemon · stand-in: what stays of a supervised daemon that was
replaced · isolation: rows run alone after the handler raised for their
batch · optimisation: a way to run a model faster, checked when it is loaded · drift: how far it moves
the model's answers · replacement: another archive that is to take a version's place.
"""
