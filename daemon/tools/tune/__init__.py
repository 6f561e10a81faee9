"""`tsctl tune`: measure a model, replay its traffic, and find the best settings.

A separate process, `python -P -m daemon.tools.tune`: an order on stdin, JSON lines on stdout (order.py).

    measuring/   batches of the real model in throw-away workers; a request's way through a daemon; trials with clients
    times        the measurements as l(n): medians with linear interpolation, and a fit a + c·n
    overlap      batches and requests on the same cores slow each other down
    load         the traffic to replay: recorded arrivals, clients that wait for their responses, a rate
    candidates   the settings to try
    replay       one setting under that traffic, in the simulator
    simulating   all candidates: a short run each, a long one for the best
    lengths      whether batches of requests with similar lengths would pay
    checking     trials of the most important ones: the real model, served for some seconds
    frontier     the settings that no other beats, and the one to recommend

Predictions are from the client's point of view. The simulator (daemon.tools.simulator) runs the same queue, dispatcher
and
collector as the daemon; only batch times, and a request's way from the client to the queue and back, are drawn from
measurements. For a load of clients, the figures of the most important settings come from a trial instead of the
simulator. Recorded arrivals, which span minutes, are not tried.
"""
