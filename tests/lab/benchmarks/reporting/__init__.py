"""From results to docs/benchmarks.md."""
