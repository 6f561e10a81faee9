"""The command line: it talks to the daemon over the control socket, and imports neither torch nor asyncio."""
