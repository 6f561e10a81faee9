"""A worker that is a group of processes: rank 0 talks to the daemon, and the others run what it runs."""
