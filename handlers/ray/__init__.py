"""Workers on a Ray cluster: the bridge, which the daemon starts, and the actors, which hold workers on nodes.

    daemon ── orders (messages.py) ──▶ bridge ── actor calls ──▶ actor on a node
           ◀─ frames of each worker ─▶        ◀─ frames, output ─      │ frames
                                                                       ▼
                                                                tsctl.handlers.worker

    messages        the daemon's orders to the bridge, and the bridge's reports
    bridge          the program: one connection to the cluster, many workers
    order_taker     its side of the socket to the daemon
    remote_worker   one worker, as the bridge holds it: from the order to the end of its actor
    cluster         Ray: the connection, actors, nodes to avoid
    errors          of calls, translated from Ray's
    nodes           decisions on nodes: why a worker has none yet, and which to avoid
    frames          frames that overtook each other, in order again
    node/           on the nodes:
      actor         the methods of an actor, and their questions to Ray
      process       the worker's process
      model_files   a model's directory in pieces, and unpacked once a node
      versions      that nodes must have in common

The daemon imports `messages` only; `bridge`, `cluster` and `actor` alone import Ray.
"""
