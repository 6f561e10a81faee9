"""Routes of the control socket for whoever watches the daemon."""
