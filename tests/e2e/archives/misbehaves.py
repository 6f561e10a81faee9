"""Does to its process what the request says, and should not: {"do": WORD}; model-config.yaml says so for its load.

Answers with the pid of its worker, and of the child that it left running, if there is one.
"""

import argparse
import ctypes
import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

from tsctl.handlers import wire

kept = {}


def connection():
    """The number of the descriptor over which the worker talks to the daemon."""
    for name in sorted(os.listdir("/proc/self/fd"), key=int, reverse=True):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                return int(name)
        except OSError:
            pass
    raise LookupError("there is no socket")


def write_to_descriptors():
    for number in (1, 2):
        os.write(number, b"\x10\x00\x00\x00 written to a descriptor")


def close_many():
    os.closerange(3, 256)


def close_all_but_one():
    ours = connection()
    os.closerange(0, ours)
    os.closerange(ours + 1, ours + 256)


def close_output():
    sys.stdout.close()
    sys.stderr.close()


def close_and_raise():
    os.closerange(0, 256)
    raise ValueError("with nowhere to say it")


def close_connection():
    os.close(connection())


def close_connection_and_stay():
    threading.Thread(target=time.sleep, args=(60,)).start()  # not a daemon thread: Python would wait for it
    os.close(connection())


def replace_connection_by_file():
    number = connection()
    with open("notes.txt", "wb") as file:
        os.dup2(file.fileno(), number)


def replace_connection_by_socket():
    number = connection()
    one, kept["other"] = socket.socketpair()
    os.dup2(one.detach(), number)


def shut_connection_down():
    with socket.socket(fileno=os.dup(connection())) as other:
        other.shutdown(socket.SHUT_RDWR)


def write_to_connection():
    os.write(connection(), b"\x04\x00\x00\x00 is no message")


def lie_about_metrics():
    lie = wire.Measurement("summary", "lie", "", (("Level", "Host"),), 1.0)
    os.write(connection(), wire.encode(wire.Done(0, [], 0.0, [lie])))


def lie_about_time():
    os.write(connection(), wire.encode(wire.Done(0, [], -1.0)))


def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def fork_and_come_back():
    os.fork()


def fork_and_raise():
    if os.fork() == 0:
        raise ValueError("raised by the child")


def fork_and_exit():
    if os.fork() == 0:
        sys.exit("said by the child")


def fork_unseen_and_come_back():
    ctypes.CDLL(None).fork()  # Python's own hooks do not see it


def stay_alive():
    os.setsid()
    time.sleep(60)
    os._exit(0)


def leave_a_child():
    pid = os.fork()
    if pid == 0:
        stay_alive()
    return pid


def leave_an_unseen_child():
    pid = ctypes.CDLL(None).fork()
    if pid == 0:
        stay_alive()
    return pid


def leave_an_unseen_child_and_exit():
    leave_an_unseen_child()
    os._exit(0)


def detach():
    """Leave a process that is no descendant of the worker any more, and obeys nothing; give its pid."""
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            os.write(writing, b"%d" % os.getpid())
            time.sleep(60)
        os._exit(0)
    os.waitpid(between, 0)
    return int(os.read(reading, 20))


def detach_for_ever():
    """Fork a chain of detached processes that each live a millisecond, so that none can be killed by its pid."""
    end = time.monotonic() + 20
    if os.fork() == 0:
        while time.monotonic() < end:
            os.setsid() if os.getsid(0) != os.getpid() else None
            if os.fork():
                os._exit(0)
            time.sleep(0.001)
        os._exit(0)


def detach_and_exit():
    detach()
    os._exit(0)


def leave_a_child_and_close():
    leave_an_unseen_child()
    os.close(connection())


def run_programs():
    assert subprocess.run(["true"], close_fds=False).returncode == 0
    assert os.system("true") == 0


def leave_a_program():
    return subprocess.Popen(["sleep", "60"], close_fds=False).pid


def multiprocess(method):
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map(abs, [-1]) == [1]


def change_directory():
    os.chdir("/")


def parse_arguments():
    argparse.ArgumentParser().parse_args()  # as of a script that was given none


def ignore_signals():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


def alarm():
    def ring(number, frame):
        raise TimeoutError("rung")

    signal.signal(signal.SIGALRM, ring)  # the test sends it


def alarm_for_ever():
    signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)


def set_limits():
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def leave_a_thread():
    threading.Thread(target=time.sleep, args=(60,)).start()


def exit_in_a_thread():
    thread = threading.Thread(target=sys.exit)
    thread.start()
    thread.join()


def crash():
    ctypes.string_at(0)


def die_of_a_real_time_signal():
    os.kill(os.getpid(), 40)


def interrupt():
    raise KeyboardInterrupt


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def fork_by_multiprocessing():
    multiprocess("fork")


def spawn_by_multiprocessing():
    multiprocess("spawn")


def sys_exit():
    sys.exit(5)


def os_exit():
    os._exit(0)


def exit_with_our_code():
    os._exit(3)


def nothing():
    pass


class Misbehaves:
    def initialize(self, context):
        globals()[context.model_yaml_config.get("do", "nothing")]()

    def handle(self, data, context):
        return [{"pid": os.getpid(), "child": globals()[row["body"]["do"]]()} for row in data]
