"""The page's requests that reach the daemon, and all that do not."""

from collections.abc import Mapping

import pytest

from tsctl.extension import CommandLine
from tsctl.extensions.console.request_filter import CHANGEABLE, Allowed, allowed


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        pytest.param("GET", "/api/status", "/tsctl/status", id="the status"),
        pytest.param("GET", "/api/metrics", "/metrics", id="the metrics"),
        pytest.param("GET", "/api/events?model=a&after=3", "/tsctl/events?model=a&after=3", id="events"),
        pytest.param("GET", "/api/models/a", "/models/a", id="a model"),
        pytest.param("GET", "/api/models/a%20b/1.0", "/models/a%20b/1.0", id="a version, quoted again"),
        pytest.param("PATCH", "/api/models/a?batch_size=4", "/models/a?batch_size=4", id="a setting"),
        pytest.param("GET", "/api/tensors/a", "/v2/models/a", id="the tensors of a model"),
        pytest.param("POST", "/api/tensors/a/2", "/v2/models/a/versions/2/infer", id="a request in tensors"),
        pytest.param("POST", "/api/predictions/a/2", "/predictions/a/2", id="a prediction"),
    ],
)
def test_the_page_may_ask(method: str, target: str, expected: str) -> None:
    assert allowed(method, target) == Allowed(method, expected)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param("/api/charts?model=a%2F1", Allowed("GET", "/tsctl/charts?model=a%2F1"), id="of a version"),
        pytest.param("/api/charts?file=/etc/passwd", None, id="an unknown parameter"),
        pytest.param("/api/charts/a", None, id="below it"),
    ],
)
def test_an_extension_says_which_of_its_documents_the_page_may_ask_for(
    target: str, expected: Allowed | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Charts(CommandLine):
        documents: Mapping[str, frozenset[str]] = {"charts": frozenset({"model"})}

    monkeypatch.setattr("tsctl.extensions.console.request_filter.extensions", lambda: (Charts(),))

    assert allowed("GET", target) == expected


@pytest.mark.parametrize(
    ("method", "target"),
    [
        pytest.param("POST", "/api/models?url=/tmp/a.mar", id="register"),
        pytest.param("POST", "/api/models/a", id="register by another form"),
        pytest.param("DELETE", "/api/models/a", id="unregister"),
        pytest.param("PUT", "/api/models/a?min_worker=0", id="scale"),
        pytest.param("PUT", "/api/models/a/1.0/set-default", id="set the default"),
        pytest.param("POST", "/api/upgrade", id="upgrade"),
        pytest.param("POST", "/tsctl/upgrade", id="upgrade at the daemon's path"),
        pytest.param("GET", "/api/config", id="read the daemon's settings"),
        pytest.param("GET", "/api/input/a", id="read another client's request"),
        pytest.param("GET", "/api/models", id="list by the daemon's path"),
        pytest.param("GET", "/api/models/a?customized=true", id="run a handler's description"),
        pytest.param("PATCH", "/api/models/a", id="change nothing"),
        pytest.param("PATCH", "/api/models/a?batch_size=4&url=/tmp/a.mar", id="pass a path beside a setting"),
        pytest.param("PATCH", "/api/models/a?min_worker=3", id="scale as a setting"),
        pytest.param("GET", "/api/status?x=1", id="pass unknown parameters"),
        pytest.param("GET", "/api/events?file=/etc/passwd", id="pass unknown parameters of events"),
        pytest.param("GET", "/api/live?x=1", id="pass unknown parameters of the counts"),
        pytest.param("GET", "/api/batches?model=a&level=info", id="pass unknown parameters of batches"),
        pytest.param("GET", "/api/models/..", id="climb"),
        pytest.param("GET", "/api/models/%2e%2e/tsctl", id="climb by escapes"),
        pytest.param("GET", "/api/models/a%2F..%2Fb", id="hide a slash"),
        pytest.param("GET", "/api/models/a%0d%0aX: y", id="smuggle a header"),
        pytest.param("GET", "/api/models/a/1/all", id="go deeper"),
        pytest.param("GET", "/api/models/", id="name nothing"),
        pytest.param("GET", "/api/models/%ff", id="send bytes that are no text"),
        pytest.param("GET", "http://elsewhere/api/../status", id="name another host"),
    ],
)
def test_the_page_cannot(method: str, target: str) -> None:
    assert allowed(method, target) is None


def test_no_setting_that_the_page_can_change_starts_another_program_or_reads_a_file() -> None:
    assert {"batch_size", "max_batch_delay"} < CHANGEABLE
    assert CHANGEABLE.isdisjoint({"", "url", "handler", "runtime", "min_worker", "install_requirements"})
