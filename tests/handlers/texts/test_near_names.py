"""The known name that is probably meant by an unknown one."""

import pytest

from tsctl.handlers.texts.near_names import did_you_mean


@pytest.mark.parametrize(
    ("name", "told"),
    [
        pytest.param("batchsize", "; did you mean `batch_size`?", id="signs between words"),
        pytest.param("TOP", "; did you mean `top`?", id="case"),
        pytest.param("topp", "; did you mean `top`?", id="a slip"),
        pytest.param("colour", "", id="nothing near"),
        pytest.param("", "", id="nothing"),
        pytest.param("t" * 100_000, "", id="a long one, of which the beginning is compared"),
    ],
)
def test_the_nearest_known_name_is_asked_for(name: str, told: str) -> None:
    assert did_you_mean(name, ["batch_size", "top"]) == told
