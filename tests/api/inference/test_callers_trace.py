"""Whether a request may have a caller's trace: asked for each request while some are recorded."""

import pytest

from tsctl.daemon.api.submission import names_caller


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param([], False, id="no headers"),
        pytest.param([("Host", "here"), ("connection-", "x")], False, id="others"),
        pytest.param([("Host", "here"), ("TraceParent", "nonsense")], True, id="in any case, valid or not"),
    ],
)
def test_a_request_names_a_caller(headers: list[tuple[str, str]], expected: bool) -> None:
    assert names_caller(headers) is expected
