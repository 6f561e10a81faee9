"""Where a handler's log records go, and that each goes there once; in a process of its own, as pytest has handlers."""

import subprocess
import sys
from textwrap import dedent

import pytest

BEGIN = """
import io, logging
from tsctl.handlers.own_process import log_to_output
log_to_output()
log = logging.getLogger("talk")
"""


def seen(source: str) -> tuple[str, str]:
    """Return what a handler prints to stdout and to stderr."""
    command = [sys.executable, "-c", BEGIN + dedent(source)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return ran.stdout, ran.stderr


def test_records_are_printed_as_they_are_from_info_on() -> None:
    printed = seen("""
        log.debug("fine detail")
        log.info("for your information")
        logging.warning("be careful")
    """)

    assert printed == ("for your information\nbe careful\n", "")


def test_a_handlers_basic_config_wins_and_each_line_comes_once() -> None:
    printed = seen("""
        logging.basicConfig(level=logging.DEBUG, format="%(levelname)s:%(name)s:%(message)s")
        log.debug("fine detail")
        log.warning("be careful")
    """)

    assert printed == ("", "DEBUG:talk:fine detail\nWARNING:talk:be careful\n")


def test_a_second_basic_config_changes_nothing_as_in_a_script() -> None:
    printed = seen("""
        logging.basicConfig(format="first %(message)s")
        logging.basicConfig(format="second %(message)s")
        log.info("one")
    """)

    assert printed == ("", "first one\n")


def test_a_worker_keeps_what_its_model_has_set_up_in_the_template() -> None:
    printed = seen("""
        logging.basicConfig(format="%(name)s %(message)s")
        log_to_output()
        log.info("one")
    """)

    assert printed == ("", "talk one\n")


@pytest.mark.parametrize("where", ["", "talk"], ids=["the root logger", "the handler's own logger"])
def test_a_line_comes_once_where_another_handler_prints_it(where: str) -> None:
    printed = seen(f"""
        own = logging.StreamHandler()
        own.setLevel(logging.WARNING)
        own.setFormatter(logging.Formatter("own %(message)s"))
        logging.getLogger({where!r}).addHandler(own)
        log.info("one")
        log.warning("two")
    """)

    assert printed == ("one\n", "own two\n")


def test_what_goes_to_another_stream_is_in_the_models_log_too() -> None:
    printed = seen("""
        log.addHandler(logging.StreamHandler(io.StringIO()))
        log.info("one")
    """)

    assert printed == ("one\n", "")
