"""The documented archives of TorchServe's examples: packed, registered and asked, on a real daemon."""
