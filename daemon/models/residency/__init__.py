"""Which versions are in memory: loaded on demand, unloaded when idle or to make room, held by an operator."""
