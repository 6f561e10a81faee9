"""The laboratory: programs that measure, compare and attack. `make` runs them; their parts are tested."""
