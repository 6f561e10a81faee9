"""The end of a program that measures workers: its failures are told, and decide the exit code."""

from collections.abc import Callable, Mapping

from daemon.core.errors import DaemonError
from daemon.tools.telling import tell
from daemon.tools.tune.measuring.harness import HarnessLoadFailed, SampleFailed


def told(work: Callable[[], None], failures: Mapping[type[Exception], str]) -> int:
    """Run the program's work, and return its exit code.

    Args:
        failures: exceptions of this program, and the words before their messages.
    """
    try:
        work()
    except tuple(failures) as error:
        tell("failed", message=f"{failures[type(error)]}{error}", details="")
    except SampleFailed as error:
        first, _, rest = str(error).partition("\n")
        tell("failed", message=f"the model cannot answer the request: {first}", details=rest)
    except HarnessLoadFailed as error:
        tell("failed", message=f"the model does not load: {error}", details=error.details)
    except DaemonError as error:
        tell("failed", message=str(error), details="")
    except (KeyboardInterrupt, BrokenPipeError):
        return 1
    else:
        return 0
    return 1
