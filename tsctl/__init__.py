"""The command line: talks to the daemon over the control socket, and imports neither torch nor asyncio.

Heavier work runs in a separate process that prints JSON lines: `tsctl.loadgen`, the load generator.
"""
