"""`tsctl config`: each value, and where it came from."""

import json
import re

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon

SETTINGS = [
    {"name": "grace", "value": 30.0, "origin": "default"},
    {"name": "models", "value": ["a.mar", "n=b.mar"], "origin": "file /etc/config.properties"},
    {"name": "restore", "value": False, "origin": "flag"},
    {"name": "model_store", "value": None, "origin": "default"},
    {"name": "queue_jobs", "value": 7, "origin": "environment"},
]


def rows(text: str) -> list[list[str]]:
    return [line.split(maxsplit=2) for line in text.splitlines()]


def test_a_daemons_settings_are_a_table(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/config", SETTINGS)

    result = invoke("config")

    assert [[word.strip() for word in row] for row in rows(result.stdout)] == [
        ["SETTING", "VALUE", "FROM"],
        ["grace", "30", "default"],
        ["models", "a.mar,n=b.mar", "file /etc/config.properties"],
        ["restore", "false", "flag"],
        ["model_store", "-", "default"],
        ["queue_jobs", "7", "environment"],
    ]


def test_json_is_the_daemons_own(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/config", SETTINGS)

    assert json.loads(invoke("config", "--json").stdout) == SETTINGS


def test_a_models_settings_have_their_units_and_when_a_change_counts(invoke: Invoke, daemon: FakeDaemon) -> None:
    settings = [
        {"name": "batchSize", "value": 8, "origin": "model-config.yaml", "changes": "from the next batch on"},
        {"name": "maxBatchDelay", "value": 2.5, "origin": "set", "changes": "from the next decision on"},
        {"name": "retry", "value": None, "origin": "default", "changes": None},
        {"name": "clientTimeoutInMills", "value": 0.0, "origin": "default"},  # as an earlier daemon tells it
    ]
    daemon.answer("GET /models/net/1.0", [{"tsctl": {"settings": settings}}])

    result = invoke("config", "net/1.0")

    assert [re.split(r"\s{2,}", line.strip()) for line in result.stdout.splitlines()] == [
        ["SETTING", "VALUE", "FROM", "A CHANGE COUNTS"],
        ["batchSize", "8", "model-config.yaml", "from the next batch on"],
        ["maxBatchDelay", "2.5 ms", "set", "from the next decision on"],
        ["retry", "-", "default", "-"],
        ["clientTimeoutInMills", "0 ms", "default", "-"],
    ]
    assert json.loads(invoke("config", "net/1.0", "--json").stdout) == settings
