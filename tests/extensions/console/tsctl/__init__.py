"""The server of `tsctl console`, without a browser: `make browser` runs one."""
