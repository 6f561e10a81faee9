"""The control socket reports how a model is served."""

import asyncio
from pathlib import Path

from tests.api.house import House


def serve(house: House, config: str = "") -> None:
    asyncio.run(house.serve("m", config=config))


def test_how_a_model_is_served_is_told_for_serving_it_elsewhere(house: House) -> None:
    serve(house, "batchSize: 4")
    house.send("POST", "/predictions/m")
    house.clock.advance(3.0)

    _, worker = asyncio.run(house.tell("GET", "/tsctl/worker/m/1.0"))

    assert (worker["modelName"], worker["modelVersion"], worker["workers"]) == ("m", "1.0", 1)
    assert worker["handler"] == worker["manifest"]["model"]["handler"] == "image_classifier"
    assert Path(worker["directory"], "MAR-INF/MANIFEST.json").is_file()
    assert (worker["python"], worker["devices"]) == (None, [])
    assert (worker["settings"]["batchSize"], worker["settings"]["batching"]) == (4, "auto")
    assert worker["batching"]["sizes"] == {"1": 1}
    assert worker["anyWorker"] is True
