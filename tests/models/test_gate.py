"""Changes go through a gate, which is closed while the daemon is being replaced."""

import asyncio

import pytest

from tsctl.daemon.core.errors import Upgrading
from tsctl.daemon.models.persistence.ledger import Gate


def test_a_closed_gate_refuses_and_says_when_to_try_again() -> None:
    gate = Gate()
    gate.close()

    with pytest.raises(Upgrading) as refused, gate.change():
        pass

    assert refused.value.status == 503
    assert refused.value.retry_after is not None
    gate.open()
    with gate.change():
        assert repr(gate) == "<Gate open, 1 inside>"


async def test_those_inside_when_it_closes_finish_and_are_waited_for() -> None:
    gate = Gate()
    with gate.change():
        with pytest.raises(ValueError), gate.change():
            raise ValueError
        gate.close()
        emptied = asyncio.ensure_future(gate.emptied())
        await asyncio.sleep(0)
        assert not emptied.done()
    await emptied
