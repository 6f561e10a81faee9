"""What tests are made of: one thing for each idea, with values that do not matter unless a test says so.

`build` and `archives` make plain values and files, `client` keeps answers, `clients` have limits without a file, and
`protocols` are those of extensions. `clock` is a fake one, `stub` an engine without processes; on them run `version` (a
version), `pool` (a pool alone) and `worker` (a worker alone); on a real loop `daemon`: all models of one.
"""
