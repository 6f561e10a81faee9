"""Random lives of HTTP connections: clients that do whatever a client may, against the daemon's own connections."""
