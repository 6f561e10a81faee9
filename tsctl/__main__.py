"""The command line: `python -m tsctl`, and the script `tsctl`."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:  # the module below it, in C: `signal` imports `enum`, for 5 ms in which Ctrl-C would print a traceback
    import _signal as signal


def main(name: str | None = None) -> None:
    """Run the command line. Ctrl-C while its modules are imported ends the process without a word, as by the signal.

    Args:
        name: in usages; None for that of the script.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else who started this ignores it
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tsctl.cli import main as run

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run(prog_name=name)


if __name__ == "__main__":
    main("tsctl")
