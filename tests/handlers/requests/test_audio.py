"""Files of sound: the numbers they hold, and what is refused before it is decoded."""

import contextlib
import io
import re
import struct
import sys
import wave
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.handlers.requests.audio import Audio, decode_audio, to_wav
from tsctl.handlers.sdk.errors import TooManyPixels, UnreadablePayload

WAVE = np.array([[0.0, 0.5, -0.5, 0.25, -1.0], [0.125, -0.125, 0.0, 0.75, 0.5]], np.float32)
SCALES = {8: 1 << 7, 16: 1 << 15, 24: 1 << 23, 32: 1 << 31}


def chunk(name: bytes, data: bytes, size: int | None = None) -> bytes:
    return name + struct.pack("<I", len(data) if size is None else size) + data + b"\0" * (len(data) % 2)


def packed(samples: np.ndarray[Any, Any], bits: int) -> bytes:
    """Return the channels' whole numbers, interleaved."""
    whole = np.minimum(samples.T.astype(np.float64) * SCALES[bits], SCALES[bits] - 1).astype("<i8")
    if bits == 8:
        return bytes((whole + 128).astype(np.uint8).tobytes())
    return bytes(whole[..., None].view(np.uint8).reshape(*whole.shape, 8)[..., : bits // 8].tobytes())


def wav(data: bytes, *, tag: int = 1, bits: int = 16, count: int = 2, rate: int = 8000, more: bytes = b"") -> bytes:
    form = struct.pack("<HHIIHH", tag, count, rate, rate * count * bits // 8, count * bits // 8, bits) + more
    return b"RIFF" + struct.pack("<I", 0) + b"WAVE" + chunk(b"fmt ", form) + chunk(b"data", data)


def broken(at: int, form: str, value: int) -> bytes:
    encoded = bytearray(wav(b""))
    struct.pack_into(form, encoded, at, value)
    return bytes(encoded)


def refusal(encoded: bytes) -> str:
    with pytest.raises(UnreadablePayload) as raised:
        decode_audio(encoded)
    return str(raised.value)


@pytest.fixture
def no_soundfile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    monkeypatch.setattr("tsctl.handlers.requests.audio.importlib.util.find_spec", lambda name: None)


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
def test_a_wav_file_of_whole_numbers_is_from_minus_one_to_one(bits: int) -> None:
    sound = decode_audio(wav(packed(WAVE, bits), bits=bits))

    assert sound.rate == 8000
    assert sound.channels.dtype == np.float32
    assert sound.channels.flags.c_contiguous and sound.channels.flags.writeable
    assert sound.channels == pytest.approx(WAVE, abs=1 / SCALES[bits])
    assert sound.channels.min() == -1


WHOLE = wav(packed(WAVE, 16))
PIPED = WHOLE.index(b"data") + 4  # after which the size stands
SIZES = tuple(struct.pack("<I", size) for size in (0xFFFFFFFF, 0x7FFFF000, 0))  # of programs that do not know it


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        pytest.param(
            wav(packed(WAVE, 16), tag=0xFFFE, more=struct.pack("<HHIH", 22, 16, 3, 1) + bytes(14)), WAVE,
            id="an extensible format is read by its inner one"),
        *(pytest.param(  # it ends in the midst of a frame
            WHOLE[:PIPED] + size + WHOLE[PIPED + 4 : -1], WAVE[:, :-1], id=f"a size of {size.hex()} is not believed")
          for size in SIZES),
        *(pytest.param(
            WHOLE[:PIPED] + struct.pack("<I", len(WHOLE) - less) + WHOLE[PIPED + 4 :], WAVE, id=f"it counts {counted}")
          for less, counted in ((0, "the whole file"), (8, "what follows RIFF"))),
        pytest.param(WHOLE[:12] + chunk(b"LIST", b"odd") + WHOLE[12:], WAVE, id="other chunks are passed over"),
        *(pytest.param(
            wav((WAVE * 3).T.astype(f"<f{bits // 8}").tobytes(), tag=3, bits=bits), WAVE * 3, id=f"{bits}-bit floats")
          for bits in (32, 64)),
    ],
)  # fmt: skip
def test_other_wav_files(encoded: bytes, expected: np.ndarray[Any, Any]) -> None:
    sound = decode_audio(encoded)

    assert sound.channels == pytest.approx(expected, abs=1e-4) and sound.channels.flags.writeable
    assert np.array_equal(sound.channels, expected) or encoded[20:22] != b"\x03\0", "floats are as they are"
    assert sound.samples == pytest.approx(expected.mean(0), abs=1e-4)
    assert Audio(WAVE[:1], 1).samples.tolist() == WAVE[0].tolist()
    assert repr(Audio(WAVE, 5)) == "<Audio 1 s, 5 Hz, channels: 2>"


@given(st.integers(1, 3), st.integers(0, 40), st.integers(1, 96000), st.integers(0, 9))
def test_what_python_writes_is_read_to_the_same_numbers(count: int, frames: int, rate: int, seed: int) -> None:
    whole = np.random.default_rng(seed).integers(-32768, 32768, (frames, count)).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(count)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(whole.tobytes())

    sound = decode_audio(file.getvalue())

    assert sound.rate == rate
    assert np.array_equal(sound.channels, whole.T.astype(np.float32) / 32768)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_sound_or_unreadable(tail: bytes) -> None:
    for start in (b"", b"RIFF\0\0\0\0WAVE", wav(b"")[:36], b"fLaC", b"OggS"):
        with contextlib.suppress(UnreadablePayload):  # and nothing else
            assert decode_audio(start + tail).channels.ndim == 2


@pytest.mark.parametrize(
    ("encoded", "why"),
    [
        pytest.param(b"RIFF\0\0\0\0WAVE", "its chunk `data` is missing", id="no samples"),
        pytest.param(b"RIFF\0\0\0\0WAVE" + chunk(b"data", b"12"), "its chunk `fmt ` is missing", id="no format"),
        pytest.param(wav(b"", count=0), "0 channels and 8000 samples a second", id="no channels"),
        pytest.param(broken(22, "<H", 1025), "1025 channels and 8000 samples a second", id="too many channels"),
        pytest.param(wav(b"", rate=0), "2 channels and 0 samples a second", id="no rate"),
        pytest.param(broken(24, "<I", 1 << 31), "2 channels and 2147483648 samples a second", id="no clock is so fast"),
        pytest.param(b"\0\0\0\x20ftypM4A ", "is an MP4 or M4A file, which is not read as sound here", id="M4A"),
        pytest.param(b"\x89PNG\r\n", "is an image (PNG), which is not read as sound here: send WAV", id="PNG"),
        pytest.param(b"\x1aE\xdf\xa3", "a WebM or Matroska file", id="WebM"),
    ],
)  # fmt: skip
def test_what_is_no_sound_is_refused_by_what_it_is(encoded: bytes, why: str) -> None:
    assert why in refusal(encoded)


@pytest.mark.parametrize(
    ("value", "bits", "shown"),
    [(np.nan, 32, "nan"), (np.inf, 32, "inf"), (-np.inf, 64, "-inf"), (np.nan, 64, "nan"), (-1e300, 64, "-inf")],
)
@pytest.mark.parametrize("kind", ["WAV", "AU", "CAF", "AIFF"])
def test_a_sample_that_is_not_finite_is_refused_by_its_place(kind: str, value: float, bits: int, shown: str) -> None:
    samples = WAVE.T.astype(f"<f{bits // 8}")
    samples[2, 1] = samples[4, 0] = value
    encoded = wav(samples.tobytes(), tag=3, bits=bits)
    if kind != "WAV":  # which soundfile reads
        soundfile, file = pytest.importorskip("soundfile"), io.BytesIO()
        soundfile.write(file, samples, 8000, format=kind, subtype={32: "FLOAT", 64: "DOUBLE"}[bits])
        encoded = file.getvalue()

    assert refusal(encoded) == (
        f"sample 3 of channel 2 is {shown} as float32, at 0.000 s; only finite samples are taken: replace it, as"
        " `numpy.nan_to_num` does, or send whole numbers"
    )


@pytest.mark.usefixtures("no_soundfile")
@pytest.mark.parametrize(
    ("encoded", "why"),
    [
        (
            b"fLaC\0\0\0\x22",
            "is a file of the format FLAC, and soundfile is not installed (pip install 'tsctl[audio]')",
        ),
        (b"OggS\0", "the format Ogg, and soundfile is not installed"),
        (wav(b"", tag=6, bits=8), "samples of 8 bits in A-law; PCM of 8, 16, 24 and 32 bits and floats"),
        (wav(b"", bits=12), "the WAV file has samples of 12 bits; PCM of 8"),
        (wav(b"", tag=0x99), "16 bits in the codec 0x0099;"),
        (b"hello", "The request's 5 bytes are not a sound: send WAV"),
    ],
)
def test_without_soundfile_the_way_to_get_it_is_told(encoded: bytes, why: str) -> None:
    assert why in refusal(encoded)


def test_a_sound_with_too_many_samples_or_not_admitted_is_refused_before_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(samples: int) -> None:
        assert samples == 10
        raise TooManyPixels

    body = wav(packed(WAVE, 16))
    monkeypatch.setattr(Audio, "MAX_SAMPLES", None)
    assert decode_audio(body).channels.shape == (2, 5)
    monkeypatch.setattr(np, "frombuffer", lambda *_: pytest.fail("decoded"))
    with pytest.raises(TooManyPixels):
        decode_audio(body, refuse)
    monkeypatch.setattr(Audio, "MAX_SAMPLES", 9)
    assert refusal(body) == "the sound has 5 samples in 2 channels; at most 9 in all are read"


def test_a_sound_is_written_as_it_is_read() -> None:
    sound = decode_audio(to_wav(Audio(WAVE * 2, 44100)))

    assert sound.rate == 44100
    assert sound.channels == pytest.approx(np.clip(WAVE * 2, -1, 1), abs=1e-4)


@pytest.mark.parametrize(("kind", "exact"), [("FLAC", True), ("WAV", True), ("AIFF", True), ("OGG", False)])
@pytest.mark.parametrize("count", [1, 2])
def test_what_soundfile_reads_has_its_numbers(kind: str, exact: bool, count: int) -> None:
    soundfile = pytest.importorskip("soundfile")
    file = io.BytesIO()
    time = np.arange(4000) / 8000
    values = np.stack([np.sin(2 * np.pi * pitch * time) / 2 for pitch in (440, 660)][:count], axis=1)
    soundfile.write(file, values, 8000, format=kind)

    sound = decode_audio(file.getvalue())

    assert sound.rate == 8000
    assert sound.channels == pytest.approx(values.T, abs=1e-4 if exact else 0.2)


@pytest.mark.parametrize(
    ("kind", "subtype", "why"),
    [
        ("WAV", "PCM_16", r"the WAV file is cut off: \d+ of 80000 bytes of samples are there; send all of it, or"),
        ("WAV", "ULAW", r"the WAV file is cut off: \d+ of 40000 bytes of samples are there"),
        ("FLAC", "PCM_16", r"The request's file of the format FLAC is damaged \("),
        ("OGG", "VORBIS", r"the Ogg file is cut off after \d+ samples: send all of it|the format Ogg is damaged"),
        ("OGG", "OPUS", r"the Ogg file is cut off after \d+ samples: send all of it|the format Ogg is damaged"),
    ],
)
@pytest.mark.parametrize("part", [0.1, 0.3, 0.6, 0.9, 0.999])
def test_a_file_that_is_cut_off_is_no_shorter_sound(kind: str, subtype: str, why: str, part: float) -> None:
    soundfile, file = pytest.importorskip("soundfile"), io.BytesIO()
    values = np.random.default_rng(3).uniform(-0.5, 0.5, 40_000)
    soundfile.write(file, values, 8000, format=kind, subtype=subtype)
    whole = file.getvalue()

    assert decode_audio(whole).channels.shape == (1, 40_000)
    assert re.search(why, refusal(whole[: int(part * len(whole))]))


@pytest.mark.parametrize("mode", ["CONSTANT", "VARIABLE"])
def test_an_mp3_file_is_cut_off_only_if_it_says_how_long_it_is(mode: str) -> None:
    soundfile, file = pytest.importorskip("soundfile"), io.BytesIO()
    values = np.concatenate([np.zeros(40_000), np.random.default_rng(3).uniform(-0.5, 0.5, 40_000)])
    soundfile.write(file, values, 44_100, format="MP3", bitrate_mode=mode)
    whole = file.getvalue()
    tag = b"ID3\x03\0\0\0\0\1\0" + bytes(128)
    first = whole.index(whole[:2], 2)  # the first frame has no sound, but the number of the others

    assert decode_audio(tag + whole).channels.shape == (1, 80_000)
    assert "the MP3 file is cut off after" in refusal(tag + whole[: len(whole) // 2])
    assert decode_audio(tag + whole[first:] + b"TAG" + bytes(125)).channels.shape[1] > 40_000, "only guessed"


def empty_ogg(soundfile: Any) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.zeros(0), 8000, format="OGG")
    return file.getvalue()


def test_an_ogg_file_without_its_last_page_is_a_sound_and_one_without_any_of_samples_is_cut_off() -> None:
    soundfile, file = pytest.importorskip("soundfile"), io.BytesIO()
    soundfile.write(file, np.random.default_rng(3).uniform(-0.5, 0.5, 40_000), 8000, format="OGG")
    whole = file.getvalue()
    heads, last = whole.index(b"OggS", whole.index(b"OggS", 1) + 1), whole.rindex(b"OggS")

    assert 0 < decode_audio(whole[:last]).channels.shape[1] < 40_000, "as a recorder leaves it that is stopped"
    assert refusal(whole[:heads]) == "the Ogg file is cut off after 0 samples: send all of it"
    assert decode_audio(empty_ogg(soundfile)).channels.shape == (1, 0)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"])
def test_a_wav_file_has_the_numbers_that_soundfile_reads(subtype: str) -> None:
    soundfile = pytest.importorskip("soundfile")
    file = io.BytesIO()
    soundfile.write(file, np.random.default_rng(3).uniform(-1, 1, (50, 2)), 8000, format="WAV", subtype=subtype)
    expected, _ = soundfile.read(io.BytesIO(file.getvalue()), dtype="float32", always_2d=True)

    assert np.array_equal(decode_audio(file.getvalue()).channels, expected.T)


@pytest.mark.parametrize("kind", ["FLAC", "OGG"])
def test_a_compressed_sound_is_bounded_before_it_is_decoded_and_a_damaged_one_is_unreadable(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    soundfile = pytest.importorskip("soundfile")
    file = io.BytesIO()
    soundfile.write(file, np.zeros(200_000), 8000, format=kind)
    body = file.getvalue()

    assert refusal(b"hello") == "The request's 5 bytes are not a sound (Format not recognised): send WAV, FLAC or Ogg"
    damaged = refusal(body[:40])
    assert re.fullmatch(
        r"The request's file of the format (FLAC|Ogg) is damaged \([^<>]+[a-z]\): send WAV, FLAC or Ogg", damaged
    )
    monkeypatch.setattr(Audio, "MAX_SAMPLES", 100_000)
    assert refusal(body) == "the sound has 200000 samples in 1 channel; at most 100000 in all are read"


def test_a_file_whose_program_wrote_into_a_pipe_does_not_say_how_long_it_is() -> None:
    soundfile = pytest.importorskip("soundfile")
    file = io.BytesIO()
    soundfile.write(file, np.zeros(8000), 8000, format="FLAC")
    head = bytearray(file.getvalue())
    head[21:26] = bytes([head[21] & 0xF0, 0, 0, 0, 0])  # the number of samples in STREAMINFO (RFC 9639): unknown

    assert refusal(bytes(head)) == "the FLAC file does not say how long it is: encode it into a file, not into a pipe"
