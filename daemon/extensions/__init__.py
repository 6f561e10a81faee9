"""The shelf: a folder for each capability that the core does not know (daemon/extension.py).

`tensors`, `json_text`, `exposition` and `registrations` are no capabilities, but libraries: several extensions import
them, and nothing else does.
"""
