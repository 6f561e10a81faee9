"""Sounds as values of parameters: files in every form that a body takes, within a limit of samples."""

import base64
import json
from typing import Any

import numpy as np
import pytest

import tsctl
from tests.handlers.typed.calls import ask, request, runtime_of, told, type_of
from tests.handlers.typed.test_instances import instances
from tsctl import Audio
from tsctl.handlers.requests.audio import decode_audio, to_wav
from tsctl.handlers.typed.signature import read_signature


def wav(samples: int = 4, channels: int = 1, rate: int = 8000) -> bytes:
    return to_wav(Audio(np.full((channels, samples), 0.5, np.float32), rate))


def in_base64(samples: int = 4) -> str:
    return base64.b64encode(wav(samples)).decode()


def lengths(sounds: list[Audio]) -> list[str]:
    return [f"{len(each.samples)}/{each.rate}" for each in sounds]


def one(sound: Audio) -> str:
    return f"{len(sound.samples)}/{sound.rate}"


def several(sounds: list[list[Audio]]) -> list[list[int]]:
    return [[len(each.samples) for each in row] for row in sounds]


def beside(sound: Audio, top: int = 1) -> str:
    return f"{len(sound.samples)} {top}"


def maybe(sound: Audio | None = None) -> str:
    return "none" if sound is None else str(len(sound.samples))


def test_the_hint_is_told_as_it_is_written() -> None:
    declared = read_signature(lengths).declared(8)

    assert [(each.name, each.kind, each.annotation) for each in declared.inputs] == [("sounds", "audio", "list[Audio]")]
    assert tsctl.Audio is Audio


@pytest.mark.parametrize("function", [lengths, one])
@pytest.mark.parametrize(
    "kind", ["", "audio/wav", "audio/x-wav", "application/octet-stream", "application/json", "text/plain"]
)
def test_a_file_is_read_whatever_its_type_says(function: Any, kind: str) -> None:
    assert told(ask(function, wav(), content_type=kind)) == [(200, "4/8000")]


@pytest.mark.parametrize(
    ("function", "row", "expected"),
    [
        (one, request(("body", "application/json", json.dumps({"sound": in_base64()}).encode())), "4/8000"),
        (one, request(("body", "application/json", json.dumps(in_base64()).encode())), "4/8000"),
        (one, request(("body", "text/plain", in_base64().encode())), "4/8000"),
        (beside, request(("sound", "audio/wav", wav(7)), ("top", "", b"3")), "7 3"),
        (beside, request(("body", "audio/wav", wav(7))), "7 1"),
        (maybe, request(("body", "application/json", b'{"sound": null}')), "none"),
        (maybe, request(("sound", "", wav(5))), "5"),
        (several, request(("sounds", "", wav(5)), ("sounds", "", wav(6))), "[5,6]"),
        (several, request(("body", "application/json", json.dumps([in_base64(2), in_base64(3)]).encode())), "[2,3]"),
        (one, instances(in_base64(2), {"b64": in_base64(3)}), '{"predictions":["2/8000","3/8000"]}'),
    ],
)
def test_every_form_of_a_body(function: Any, row: Any, expected: str) -> None:
    assert told(ask(function, row)) == [(200, expected)]


def test_a_file_that_is_no_sound_fails_its_row_only() -> None:
    answers = ask(lengths, wav(), b"\x89PNG\r\n\x1a\n", wav()[:20])

    image = "`sounds`: The request is an image (PNG), which is not read as sound here: send WAV, FLAC or Ogg"
    assert told(answers) == [
        (200, "4/8000"),
        (400, f"{image} (Request r1)"),
        (400, "`sounds`: the WAV file has no samples: its chunk `data` is missing (Request r2)"),
    ]


def test_sounds_that_do_not_fit_together_are_run_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Audio, "MAX_SAMPLES", 100)
    calls = []

    def predict(sounds: list[Audio]) -> list[int]:
        calls.append([len(each.samples) for each in sounds])
        return calls[-1]

    rows = [request(("body", "", wav(size)), number=number) for number, size in enumerate((60, 60, 30, 101))]
    answers = runtime_of(predict).run(rows)

    assert [each.status for each in answers] == [200, 200, 200, 400]
    assert calls == [[60, 30], [60]]
    assert b"the sound has 101 samples in 1 channel; at most 100 in all are read" in answers[3].body


def test_a_sound_is_answered_as_wav() -> None:
    def predict(sound: Audio) -> Audio:
        return Audio(-sound.channels[:, :2], sound.rate * 2)

    [answer] = ask(predict, wav(4, 2))

    assert type_of(answer) == "audio/wav"
    sound = decode_audio(answer.body)
    assert (sound.channels.shape, sound.rate) == ((2, 2), 16000)
    assert sound.channels == pytest.approx(-0.5, abs=1e-4)


def test_a_sound_may_be_written_to() -> None:
    def predict(sound: Audio) -> bool:
        sound.channels *= 2
        return bool(sound.samples.flags.writeable)

    assert told(ask(predict, wav())) == [(200, "true")]
