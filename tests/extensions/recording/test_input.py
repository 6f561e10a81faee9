"""Of large requests, forms, and versions that follow, what is recorded; the rest is in conversations/input.txt."""

import asyncio
from pathlib import Path

import pytest

from tests.api.house import House
from tests.kit.shelf import needs
from tsctl.daemon.core.job import Param
from tsctl.daemon.extensions.recording.recorder import MOST_BYTES, RECORDED, sample_of
from tsctl.daemon.models.archives.sample import WARMUP, Sample, warmup_sample
from tsctl.daemon.models.version import ModelVersion

RECORDING = "recordInput: true"


def serve(house: House, config: str = "") -> ModelVersion:
    return asyncio.run(house.serve("m", config=config))


def post(house: House, body: bytes, *headers: str) -> None:
    house.send("POST", "/predictions/m", body, *headers)
    house.clock.advance(1.0)


def test_a_body_that_is_too_large_is_not_kept(tmp_path: Path) -> None:
    house = House(tmp_path, max_body=MOST_BYTES + 1)
    serve(house, RECORDING)
    post(house, bytes(MOST_BYTES))
    post(house, bytes(MOST_BYTES + 1))

    assert len(asyncio.run(house.ask("GET", "/tsctl/input/m")).body) == MOST_BYTES


def test_a_request_of_several_inputs_is_recorded_as_the_form_that_repeats_it(house: House) -> None:
    serve(house)
    sample = sample_of([Param("data", "", b"\x00\r\n--"), Param("more", "image/png", b"")])
    assert sample is not None

    post(house, sample.body, f"Content-Type: {sample.content_type}")

    (job,) = (job for worker in house.engine.workers for batch in worker.batches for job in batch.jobs)
    assert {(*each[:2], bytes(each.value)) for each in job.params} == {
        ("data", "", b"\x00\r\n--"), ("more", "image/png", b"")
    }  # fmt: skip


def test_a_request_that_no_form_repeats_is_not_recorded() -> None:
    assert sample_of([]) is None
    assert sample_of([Param("a", "", b""), Param('"', "", b"")]) is None


@needs("cache")
@pytest.mark.parametrize(
    ("config", "change"),
    [
        pytest.param(RECORDING, "client_timeout=5", id="another setting was changed"),
        pytest.param("", "record_input=true", id="recording was asked for later"),
    ],
)
def test_a_request_that_the_cache_answers_is_recorded_after_a_change(config: str, change: str, house: House) -> None:
    model = serve(house, f"{config}\ncache: {{seconds: 60, bytes: 1MiB}}")
    post(house, b"kept")
    assert asyncio.run(house.tell("PATCH", f"/models/m?{change}"))[0] == 200
    post(house, b"other")

    post(house, b"kept")

    assert model.sample is not None and model.sample.body == b"kept"
    assert [type(each).__name__ for each in model.watchers] == ["Recorder", "AnswerCache"]


@pytest.mark.parametrize(
    ("warmup", "kind"),
    [
        ("sample.jpg", ""), (["sample.jpg", "other.jpg"], ""), ({"file": ["sample.jpg"]}, ""),
        ({"file": "elsewhere/sample.jpg", "contentType": "image/jpeg"}, "image/jpeg"),
        ("other.jpg", None), (3, None), ({}, None), ({"file": [1]}, None),
    ],
)  # fmt: skip
def test_the_archives_sample_is_the_first_file_that_its_warmup_names(
    warmup: object, kind: str | None, tmp_path: Path
) -> None:
    (tmp_path / "sample.jpg").write_bytes(b"pixels")

    expected = None if kind is None else Sample(b"pixels", kind, WARMUP)
    assert warmup_sample(tmp_path, {"warmup": warmup}) == expected


async def test_a_version_that_is_built_anew_of_the_same_files_keeps_what_was_recorded(house: House) -> None:
    old = await house.serve("m", config=RECORDING)
    old.sample = Sample(b"cat", "image/jpeg", RECORDED)

    new = asyncio.ensure_future(house.registrar.renew(old, "built anew"))
    await house.until(new.done)

    assert new.result() is not old
    assert new.result().sample is old.sample


async def test_another_archive_begins_without(house: House) -> None:
    old = await house.serve("m", config=RECORDING)
    old.sample = Sample(b"cat", "image/jpeg", RECORDED)
    house.put("m", config=RECORDING, place="other")

    await house.tell("POST", "/models?url=other&replace=true")

    assert house.registry.find("m") is not old
    assert house.registry.find("m").sample is None
