"""Which model a path names, before its route is asked."""

from tests.kit.said import said_in
from tsctl.daemon.api.inference.paths import model_named


@said_in("model_paths.txt")
def test_the_model_that_a_path_names(given: str) -> str:
    return model_named(given.split("/") if given else []) or "none"
