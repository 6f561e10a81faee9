"""The TorchServe whose behaviour handlers find here; some compare it before they use something."""

__version__ = "0.12.0"
