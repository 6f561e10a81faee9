"""While a service has reserved a model, no command changes which versions answer; what must go goes all the same."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.kit.services import NotedDaemon
from tsctl.daemon.core.errors import Conflict
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.routing.route import parse_route


async def reserved(tmp_path: Path) -> NotedDaemon:
    """Return a daemon with three versions of `m`, of which two are reserved."""
    bench = NotedDaemon(tmp_path)
    for version in ("1.0", "2.0", "3.0"):
        await bench.register(bench.mar(version=version))
    bench.service.reserve("m", ("1.0", "2.0"))
    return bench


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(lambda registrar: registrar.set_default("m", "3.0"), id="another default version"),
        pytest.param(lambda registrar: registrar.routes.set("m", parse_route("1.0=1 3.0=1")), id="a route"),
        pytest.param(lambda registrar: registrar.routes.remove("m"), id="no route"),
        pytest.param(lambda registrar: registrar.unregister("m", "2.0"), id="a version less"),
    ],
)
async def test_a_command_that_would_interfere_is_refused_with_the_remedy(
    tmp_path: Path, command: Callable[[Registrar], Awaitable[object]]
) -> None:
    bench = await reserved(tmp_path)

    with pytest.raises(Conflict, match=r"m is reserved\. End it\."):
        await command(bench.registrar)

    assert (bench.names, bench.registry.find("m").version) == (["m/1.0", "m/2.0", "m/3.0"], "1.0")


async def test_each_command_has_an_error_of_its_own(tmp_path: Path) -> None:
    registry = (await reserved(tmp_path)).registry
    raised = []
    for _ in range(2):
        with pytest.raises(Conflict) as caught:
            registry.check_unreserved("m")
        raised.append(caught.value)

    assert raised[0] is not raised[1]


async def test_a_version_that_is_not_needed_and_another_model_are_free(tmp_path: Path) -> None:
    bench = await reserved(tmp_path)
    await bench.register(bench.mar("n"))

    await bench.registrar.unregister("m", "3.0")
    await bench.registrar.unregister("n", "1.0")

    assert bench.names == ["m/1.0", "m/2.0"]


async def test_a_reserved_version_whose_program_has_ended_is_released_first(tmp_path: Path) -> None:
    bench = NotedDaemon(tmp_path)
    for name in ("m", "n"):
        await bench.register(bench.mar(name), ephemeral=True, owner="token")
    bench.service.reserve("m", ("1.0",))

    await bench.registrar.unregister_all("token")

    assert bench.service.released == [("m/1.0", "the process that served 1.0 has ended")]
    assert bench.names == []


async def test_a_model_is_forgotten_with_its_last_version(tmp_path: Path) -> None:
    bench = NotedDaemon(tmp_path)
    for version in ("1.0", "2.0"):
        await bench.register(bench.mar(version=version))

    await bench.registrar.unregister("m", "2.0")
    assert bench.service.forgotten == []
    await bench.registrar.unregister("m", "1.0")

    assert bench.service.forgotten == ["m"], "and not `n`, which another daemon may be about to restore"


async def test_a_model_that_the_start_has_not_brought_back_is_forgotten(tmp_path: Path) -> None:
    bench = NotedDaemon(tmp_path)
    await bench.register(bench.mar())

    again = await bench.restart()

    assert again.service.forgotten == ["n"]
