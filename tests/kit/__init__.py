"""What tests are made of: one thing for each idea, with values that do not matter unless a test says so.

`build` and `archives` make plain values and files, `client` keeps answers, `clients` have limits without a file, and
`protocols` are those of extensions. On a fake clock run `version` (a version with stub workers), `pool` (a pool alone)
and `worker` (a worker alone); on a real loop `daemon`: all models of one.
"""
