"""What only TorchServe's users import: names of its package `ts` that nothing else here needs.

`table` says which name of `ts` is which of ours; handlers/compat.py serves it.
"""
