"""The daemon as a process: its sockets and locks, its end, and its replacement by a new one."""
