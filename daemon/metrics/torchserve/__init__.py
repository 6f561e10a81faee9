"""TorchServe's ways to see metrics: its metrics modes and its declarations."""
