"""`tsctl tune`: serve a model under one setting after the other, while the command's load generator sends requests.

A separate process, `python -P -m tsctl.daemon.tools.tune`. Each line of JSON on stdin is answered by one on stdout:

    an order (serving.py)    started    cores: that the model's workers may use
    settings                 serving    port: on 127.0.0.1; threads: of each worker
                             failed     message, details: the model does not load
    null                     used       cpu: seconds of processor time of this process and of the present workers

The settings are named as in `model-config.yaml`; all others stay as they are. The program ends when stdin is closed.

HTTP, queue, dispatcher and workers are the daemon's, in a process of their own: the model that is served goes on with
its own workers, and shares the machine with these.
"""
