"""`python -P -m tsctl.handlers.template FD DAEMON`: import torch once, and fork workers on request.

A template does once the work that all workers would repeat. The first template imports torch. Others are forked from
it, and import torchvision too, or load a model whose `initialize` is ours, so that its workers share the weights
(copy-on-write). The rules:

* A template is exec'd with one thread for each library, sets one for torch, and runs nothing in parallel: after a
  parallel operation libgomp waits for threads that a forked process does not have.
* A template calls nothing of torch.cuda, and has one thread and no child whenever it forks (`check_fit`).
* No handler of a user runs here. In a template of a model, the model's own model file runs, as part of our
  `initialize`; a thread, process or open file left behind makes the template unfit.

The template ends when the daemon closes the socket or dies.
"""

import gc
import importlib
import os
import socket
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from tsctl.handlers import orders, wire, worker
from tsctl.handlers.own_process import die_with, log_to_output
from tsctl.handlers.process.forking import (
    NotForkable,
    check_fit,
    fork_for,
    freeze,
    open_descriptors,
    start_anew,
)
from tsctl.handlers.process.threads import announce_threads, set_threads
from tsctl.handlers.requests.excerpt import message_of
from tsctl.handlers.texts.encodable import sendable

# The imports that all workers with a torch handler share, without those only for images.
FIRST = ("torch", "tsctl.handlers.builtin.base", "tsctl.handlers.builtin.text_classifier", "threadpoolctl")


class NewProcess(NamedTuple):
    """The new process's order and its descriptors."""

    order: orders.Order
    socket: int
    stdout: int
    stderr: int


class TemplateProcess:
    """This process as a template. `prepared` is the model that its workers share."""

    def __init__(self, sock: socket.socket, daemon: int) -> None:
        self._sock = sock
        self._daemon = daemon
        self._prepared: worker.Prepared | None = None

    def prepare(self, modules: Sequence[str], load: wire.Load | None = None) -> bool:
        """Import and load, and report to the daemon; return False if this process cannot be forked."""
        began = time.perf_counter()
        gc.disable()  # torch is imported in seven eighths of the time
        try:
            for module in modules:
                importlib.import_module(module)
            set_threads(1)
            if load is not None:
                before = open_descriptors()
                log_to_output()
                self._prepared = worker.prepare_for_all(load)
                check_fit(before)
            check_fit()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a worker will meet and report the error in full
            reason = (
                message_of(error) if isinstance(error, NotForkable) else f"{type(error).__name__}: {message_of(error)}"
            )
            self._tell(orders.Unfit(sendable(reason)[:1000]))
            return False
        # What imports leave behind is little. What is unreachable of a model may be large, and what was there before it
        # is frozen.
        freeze(collect=load is not None)
        self._tell(orders.Ready(time.perf_counter() - began))
        return True

    def obey(self) -> NewProcess | None:
        """Handle orders until the daemon is gone (return None), or until this is a new process."""
        while True:
            packet, descriptors, _, _ = socket.recv_fds(self._sock, orders.LARGEST, 3, socket.MSG_CMSG_CLOEXEC)
            if not packet:
                return None
            order = orders.decode_order(packet)
            try:
                if len(descriptors) != 3:
                    raise NotForkable("it has no room for more descriptors")
                check_fit()
                sys.stdout.flush()
                sys.stderr.flush()
                pid = fork_for(self._daemon)
            except (OSError, NotForkable) as error:
                self._tell(orders.OrderRefused(str(error)))
            else:
                if pid == 0:
                    return NewProcess(order, *descriptors)
                self._tell(orders.Forked(pid))
            for descriptor in descriptors:
                os.close(descriptor)

    def become(self, born: NewProcess) -> int | None:
        """In the new process: run a worker to its end and return its exit code, or become a template (None)."""
        self._sock.close()
        match born.order:
            case orders.Fork(threads=threads, directory=directory):
                start_anew(born.stdout, born.stderr, directory)
                announce_threads(threads)
                set_threads(threads)
                return worker.converse(born.socket, self._prepared)
            case orders.Grow(modules=modules, load=load):
                start_anew(born.stdout, born.stderr, os.getcwd() if load is None else load.model_dir)
                self._sock = socket.socket(fileno=born.socket)
                return None if self.prepare(modules, load) else 0

    def _tell(self, report: orders.Report) -> None:
        self._sock.send(orders.encode(report))


def main(arguments: list[str]) -> int:
    descriptor, daemon = map(int, arguments)
    die_with(daemon)
    os.set_inheritable(descriptor, False)
    template = TemplateProcess(socket.socket(fileno=descriptor), daemon)
    try:
        if not template.prepare(FIRST):
            return 0
        while (born := template.obey()) is not None:
            code = template.become(born)
            if code is not None:
                return code
    except (BrokenPipeError, ConnectionResetError):
        pass  # the daemon is gone
    return 0


if __name__ == "__main__":
    worker.leave(main(sys.argv[1:]))
