"""The names of the headers, as workers are told them."""

from pathlib import Path

import pytest

from tests.kit.build import make_config
from tsctl.daemon.config.worker_env import model_environment


@pytest.mark.parametrize(
    ("setting", "variable"),
    [
        ("sequence_id_header", "TS_REQUEST_SEQUENCE_ID"),
        ("sequence_start_header", "TS_REQUEST_SEQUENCE_START"),
        ("sequence_end_header", "TS_REQUEST_SEQUENCE_END"),
    ],
)
def test_a_header_is_a_variable(setting: str, variable: str, tmp_path: Path) -> None:
    environment = model_environment({variable: "inherited"}, make_config(tmp_path, **{setting: "X-Mine"}))

    assert environment[variable] == "X-Mine"
