"""What a page in the browser may ask for."""

from tsctl.extensions.live import COMMAND_LINE


def test_a_page_may_ask_for_the_counts_as_they_are_and_for_the_batches_of_a_model() -> None:
    assert COMMAND_LINE.documents == {"live": frozenset(), "batches": frozenset({"model", "after"})}
