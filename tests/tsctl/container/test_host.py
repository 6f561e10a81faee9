"""Who started a container is seen from its environment."""

from pathlib import Path

import pytest

from tsctl.container.host import SAGEMAKER_MODEL, Host, host_of, without_absent


@pytest.mark.parametrize(
    ("environment", "serve", "folders", "expected"),
    [
        pytest.param({}, True, [], Host.PLAIN, id="nobody"),
        pytest.param({"PROTOCOL_VERSION": "v1"}, False, [], Host.KSERVE, id="KServe"),
        pytest.param({"PROTOCOL_VERSION": "7"}, False, [], Host.PLAIN, id="a variable that only has this name"),
        pytest.param({}, True, [SAGEMAKER_MODEL], Host.SAGEMAKER, id="SageMaker"),
        pytest.param({}, False, [SAGEMAKER_MODEL], Host.PLAIN, id="a line of one's own there"),
    ],
)
def test_host(environment: dict[str, str], serve: bool, folders: list[Path], expected: Host) -> None:
    assert host_of(environment, serve, lambda path: path in folders) is expected


def test_a_placeholder_without_a_value_is_no_variable() -> None:
    environment = {"TS_SERVICE_ENVELOPE": "<no value>", "TS_A": "", "TS_B": "b", "OTHER": ""}

    assert without_absent(environment) == {"TS_B": "b", "OTHER": ""}
