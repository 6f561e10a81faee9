"""`tsctl tune`: measure a model, replay its traffic, and find the best settings.

A separate process, `python -P -m daemon.tune`: an order on stdin, JSON lines on stdout (order.py).

    measuring/   batches of the real model in throw-away workers; a request's way through a daemon; a load's clients
    times        what was measured as l(n): medians, between which is interpolated, and a fit a + c·n
    overlap      batches and requests on the same cores: each makes the other take longer
    load         which traffic to replay: recorded arrivals, clients that wait for their answers, a rate
    candidates   the settings to try
    replay       one setting under that traffic, in the simulator
    simulating   all candidates, one short run each, the best a long one
    checking     the few that matter are tried: the real model, served so for some seconds
    frontier     the settings that no other beats, and the one to recommend

Predictions are from the client's point of view. The simulator (daemon.simulate) runs the same queue, dispatcher and
collector as the daemon; only batch times, and a request's way from the client to the queue and back, are drawn from
measurements. For a load of clients, the figures of the most important settings come from a trial instead of the
simulator. Recorded arrivals, which span minutes, are not tried.
"""
