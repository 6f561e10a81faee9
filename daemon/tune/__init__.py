"""`tsctl tune`: measure a model, replay its traffic, and find the settings worth having.

A process of its own, `python -P -m daemon.tune`: an order on stdin, JSON lines on stdout (order.py).

    measuring/   batches of the real model in throw-away workers; a request's way through a daemon; a load's clients
    times        what was measured as l(n): medians, between which is interpolated, and a fit a + c·n
    overlap      batches and requests on the same cores: each makes the other take longer
    load         which traffic to replay: recorded arrivals, clients that wait for their answers, a rate
    candidates   the settings to try
    replay       one setting under that traffic, in the simulator
    simulating   all candidates, one short run each, the best a long one
    checking     the few that matter are tried: the real model, served so for some seconds
    frontier     the settings that no other beats, and the one to recommend

What is predicted is what a client sees. The simulated part (daemon.simulate) runs the same queue, dispatcher and
collector as the daemon; only the time of a batch is drawn from what was measured, and a request's way from the client
to the queue and back takes what was measured too. Where the load is a number of clients, the figures of the settings
that matter are not the simulator's but those of a trial. Recorded arrivals, which are of minutes, are not tried.
"""
