"""Names of TorchServe's package `ts` that only its users import.

`table` maps each name of `ts` to ours; handlers/runtime/compat.py serves the table.
"""
