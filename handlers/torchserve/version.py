"""The TorchServe version whose behaviour handlers find here; some handlers compare this version."""

__version__ = "0.12.0"
