"""Triton's metrics are shown to those who ask for them by name, and to nobody else."""

import re
from pathlib import Path

from tests.api.house import House

ASKED = "/metrics?name[]=nv_inference_request_success&name[]=nv_inference_count"


async def test_tritons_names_are_served_where_they_are_asked_for(tmp_path: Path) -> None:
    house = House(tmp_path)
    await house.serve("m")
    for _ in range(2):
        await house.ask("POST", "/predictions/m", b"a")

    plain = (await house.ask("GET", "/metrics")).body.decode()
    asked = (await house.ask("GET", ASKED)).body.decode()

    assert "nv_inference" not in plain
    found = dict(re.findall(r'^(nv_\w+)\{model="m",version="1.0",?\} (\S+)$', asked, re.MULTILINE))
    assert {name: float(value) for name, value in found.items()} == {
        "nv_inference_request_success": 2.0, "nv_inference_count": 2.0,
    }  # fmt: skip


async def test_every_one_of_them_has_a_value_for_each_version(tmp_path: Path) -> None:
    house = House(tmp_path)
    await house.serve("m")
    names = ("request_success", "request_failure", "count", "exec_count", "request_duration_us", "queue_duration_us",
             "compute_infer_duration_us", "pending_request_count")  # fmt: skip

    asked = await house.ask("GET", "/metrics?" + "&".join(f"name[]=nv_inference_{name}" for name in names))

    assert len(re.findall(r'model="m"', asked.body.decode())) == len(names)
