"""The model repository of the Open Inference Protocol: for those who may manage models."""

from tests.api.house import House
from tsctl.daemon.extensions.oip.routes import oip_routes
from tsctl.daemon.http.router import Router


async def test_an_address_for_predictions_alone_has_no_repository(house: House) -> None:
    await house.serve("m")
    house._router = Router(oip_routes(house.registry, lambda: True, house._predictions["v2"]))

    status, document = await house.tell("POST", "/v2/repository/index")

    assert (status, document["error"]) == (
        404, "The model repository is part of management: ask at `--management-address`, or the control socket.",
    )  # fmt: skip
    assert (await house.tell("POST", "/v2/repository/models/m/unload"))[0] == 404
