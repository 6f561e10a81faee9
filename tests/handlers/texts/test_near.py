"""The known name that is probably meant by an unknown one."""

from tests.kit.said import said_in
from tsctl.handlers.texts.near import did_you_mean


@said_in("near.txt")
def test_the_nearest_known_name_is_asked_for(given: str) -> str:
    return did_you_mean(given.replace("LONG", "t" * 100_000), ["batch_size", "top"])
