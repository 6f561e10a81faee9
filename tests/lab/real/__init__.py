"""`python -m tests.lab real`: models with the weights that their packages have, served as users serve them.

models       the table: packages, licences, what is served, what is asked, the same function in this process
packages     an environment of its own for them, beside the project's
inputs       photographs, recordings and texts
handlers     files as users write them; those of docs/examples are served, too
__main__     answers of a daemon beside those of this process
streams      live recordings: a sequence each, over each protocol
heap         what a batch's freed memory costs
bar          how fast `auto` is, beside the best constant batch size
"""
