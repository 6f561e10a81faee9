"""`tsctl console`: its server, the process, and a browser, which `make browser` runs."""
