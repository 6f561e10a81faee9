"""Programs of their own beside the daemon: `tsctl check` and `tsctl tune` run them."""
