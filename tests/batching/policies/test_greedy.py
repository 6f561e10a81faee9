"""An idle worker takes whatever waits, at once; and how a policy is chosen."""

import pytest

from tsctl.daemon.batching.policies.auto import Auto
from tsctl.daemon.batching.policies.collector import Facts, Send
from tsctl.daemon.batching.policies.table import Greedy, make_collector
from tsctl.daemon.batching.traffic.traffic import Traffic
from tsctl.daemon.model_settings import POLICIES
from tsctl.daemon.models.settings import ROWS


@pytest.mark.parametrize(
    ("waiting", "decision"),
    [
        pytest.param(1, Send(1, "at_once"), id="a lone job goes alone"),
        pytest.param(3, Send(3, "at_once"), id="all that waits goes together"),
        pytest.param(4, Send(4, "full"), id="a full batch is a full batch"),
        pytest.param(9, Send(4, "full"), id="and never more"),
    ],
)
@pytest.mark.parametrize("stopping", [False, True])
def test_greedy_never_waits(waiting: int, decision: Send, stopping: bool) -> None:
    collector = Greedy(batch_size=4)

    assert collector.decide(Facts(waiting, idle=2, stopping=stopping), now=1.0) == decision


@pytest.mark.parametrize("policy", POLICIES)
def test_a_collector_is_named_after_its_policy(policy: str) -> None:
    assert make_collector(policy, 4, 0.1, Traffic(4)).name == policy


def test_the_default_anticipates() -> None:
    assert isinstance(make_collector(ROWS["policy"].default, 4, 0.1, Traffic(4)), Auto)
