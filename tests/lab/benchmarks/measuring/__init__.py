"""How it is measured: a load generator that is nobody's own, /proc, and medians."""
