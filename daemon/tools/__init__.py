"""Programs of their own beside the daemon: `tsctl check`, `tsctl tune` and `tsctl optimize` run them."""
