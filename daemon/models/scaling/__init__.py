"""As many workers as the traffic takes, between `minWorkers` and `maxWorkers`, where `targetQueueMs` is set.

facts        the facts and the answer of the rule
prediction   how long a request will wait for so many workers, from learned batch times and arrivals
rule         facts → how many workers, and why: a pure function, without a clock
recent       the last seconds: arrivals, and requests that waited beside busy workers
range        the one place where an operator's range and the rule's choice become a number of workers
memory       the host's memory that is left
resources    whether another worker has room: cores, GPUs, memory of the host and of GPUs, measured once one is wanted
autoscaler   one version: facts are gathered, the rule is asked, its answer is carried out
autoscaling  all versions of a registry, once in a while
"""
