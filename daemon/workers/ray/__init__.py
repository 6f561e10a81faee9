"""Workers on a Ray cluster: ordinary workers to the pool, whose processes a bridge starts (handlers/ray)."""
