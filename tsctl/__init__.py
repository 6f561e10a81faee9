"""The command line: it talks to the daemon over the control socket, and imports neither torch nor asyncio.

What needs more runs as a process of its own and prints JSON lines: `tsctl.loadgen`, the load generator.
"""
