"""The entry point of the container image: `python -m tsctl.container WORDS`, and the program `torchserve` in it.

    __main__      the words → the program that they mean: the server, `torchserve`, or any other
    torchserve    `torchserve --start …`, `--stop`, `--version`: the flags of TorchServe's program
    host          KServe, SageMaker or neither of them, seen from the environment; where their models are
    placement     addresses, models and directories for that host, where neither a flag nor a variable names them
    health        the health check of the image
    init          process 1 of a container: passes signals on and reaps orphans

The wheel installs no script named `torchserve`: pip would silently overwrite the program of an installed TorchServe.
The image (Dockerfile) has one, where no TorchServe is.

Predictions are served on all addresses of the container. Management is not: an address in config.properties becomes
one of the loopback interface, or the control socket, unless a flag or a variable of tsctl names another.
"""
