"""Sounds: the hint `Audio` of a typed handler, and its files. WAV is read here, all else by the package soundfile.

from tsctl import Audio

def predict(sound: Audio) -> float:
    return float(abs(sound.samples).max())
"""

import importlib.util
import io
import struct
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tsctl.handlers.sdk.errors import TooManyPixels, UnreadablePayload

Samples = np.ndarray[Any, np.dtype[np.float32]]
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE  # `wFormatTag` of WAVE
_CODECS = {0x0002: "ADPCM", 0x0006: "A-law", 0x0007: "µ-law", 0x0011: "IMA ADPCM", 0x0055: "MP3"}
_TAKEN = "send WAV, FLAC or Ogg"
# Of libsndfile: channels and samples a second at most, and the length of a file whose program wrote into a pipe.
_MOST_CHANNELS, _FASTEST, _UNKNOWN = 1024, 2**31 - 1, 2**63 - 1
_UNSAID = 0x7FFF0000  # bytes of samples in a WAV file: programs that write into a pipe say as many, or more, or 0
# What soundfile does not read, by how a file begins: from which byte, and what it is.
_OTHERS = (
    (4, b"ftyp", "an MP4 or M4A file"), (0, b"\x1aE\xdf\xa3", "a WebM or Matroska file"), (0, b"#!AMR", "an AMR file"),
    (0, b"\x89PNG", "an image (PNG)"), (0, b"\xff\xd8\xff", "an image (JPEG)"), (0, b"%PDF", "a PDF document"),
)  # fmt: skip
_KNOWN = ((0, b"fLaC", "FLAC"), (0, b"OggS", "Ogg"), (0, b"ID3", "MP3"), (0, b"FORM", "AIFF"), (0, b"RF64", "RF64"))


class Audio:
    """A sound.

    Attributes:
        channels: float32, shape (channels, samples), as in the file: finite, and from -1 to 1 for a file of whole
            numbers.
        rate: samples a second.
        MAX_SAMPLES: of all channels together; files with more are refused before they are decoded. None: no limit.
    """

    MAX_SAMPLES: ClassVar[int | None] = 1 << 27  # 512 MiB; 46 minutes at 48 kHz

    __slots__ = ("channels", "rate")

    def __init__(self, channels: Samples, rate: int) -> None:
        self.channels, self.rate = channels, rate

    def __repr__(self) -> str:
        count, length = self.channels.shape
        return f"<Audio {length / self.rate if self.rate else 0:.3g} s, {self.rate} Hz, channels: {count}>"

    @property
    def samples(self) -> Samples:
        """The mean of the channels: float32, shape (samples,)."""
        only = len(self.channels) == 1
        mixed: Samples = self.channels[0] if only else self.channels.mean(axis=0, dtype=np.float32)
        return mixed


def decode_audio(encoded: bytes | bytearray, admit: Callable[[int], None] | None = None) -> Audio:
    """Decode a file of sound.

    Args:
        encoded: WAV (PCM of 8, 16, 24 or 32 bits, or floats); FLAC, Ogg, and what else soundfile reads, if it is there.
        admit: called with the number of samples of all channels before they are decoded; may raise TooManyPixels.

    Raises:
        UnreadablePayload: the file is none of these, is damaged or cut off, has more than `Audio.MAX_SAMPLES`, or holds
            a sample that is NaN, infinite, or beyond float32.
        TooManyPixels: `admit` raised it.
    """
    if encoded[:4] == b"RIFF" and encoded[8:12] == b"WAVE":
        wave = _read_wave(encoded)
        if wave is not None:
            _bound(wave.frames, wave.channels, admit)
            sound = _decode_wave(wave)
            return _finite(sound) if wave.floats else sound
    return _finite(_by_soundfile(encoded, admit))


def to_wav(sound: Audio) -> bytes:
    """Encode a sound as WAV with 16 bits a sample; values beyond -1 and 1 are cut off."""
    whole = np.rint(np.clip(sound.channels, -1, 1) * 32767).astype("<i2")
    count, width = len(whole), 2
    data = np.ascontiguousarray(whole.T).tobytes()
    head = struct.pack("<HHIIHH", _PCM, count, sound.rate, sound.rate * count * width, count * width, 8 * width)
    return (
        struct.pack("<4sI4s4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", len(head))
        + head
        + (struct.pack("<4sI", b"data", len(data)) + data)
    )


def _finite(sound: Audio) -> Audio:
    """Return a sound of finite samples; a model would answer one that is not with NaN, and 200.

    Raises:
        UnreadablePayload: naming the first sample that is not finite.
    """
    values = sound.channels
    if values.size and not np.isfinite((values.min(), values.max())).all():  # both are NaN if a value is
        at, channel = divmod(int((~np.isfinite(values.T)).argmax()), len(values))
        raise UnreadablePayload(
            f"sample {at + 1} of channel {channel + 1} is {values[channel, at]} as float32, at {at / sound.rate:.3f} s;"
            " only finite samples are taken: replace it, as `numpy.nan_to_num` does, or send whole numbers"
        )
    return sound


class _Wave(NamedTuple):
    """The samples of a WAV file, as they stand there."""

    floats: bool
    width: int  # bytes of a sample
    channels: int
    rate: int
    data: memoryview

    @property
    def frames(self) -> int:
        return len(self.data) // (self.width * self.channels)


def _bound(frames: int, count: int, admit: Callable[[int], None] | None) -> None:
    samples, most = frames * count, Audio.MAX_SAMPLES
    if most is not None and samples > most:
        channels = f"{count} channel{'s' * (count != 1)}"
        raise UnreadablePayload(f"the sound has {frames} samples in {channels}; at most {most} in all are read")
    if admit is not None:
        admit(samples)


def _read_wave(encoded: bytes | bytearray) -> _Wave | None:
    """Find format and samples in the chunks of a WAV file; None for a codec that soundfile may know.

    A program that writes into a pipe does not know the lengths: then the samples end where the file ends.
    """
    view, at, form = memoryview(encoded), 12, b""
    while at + 8 <= len(view):
        name, size = struct.unpack_from("<4sI", view, at)
        chunk = view[at + 8 : at + 8 + size]
        if name == b"fmt ":
            form = bytes(chunk[:26])
        elif name == b"data":
            (whole,) = struct.unpack_from("<I", view, 4)
            if not size and 8 + whole < len(view):
                chunk = view[at + 8 :]
            elif len(chunk) < size < _UNSAID and size not in (len(view), len(view) - 8):  # some count the header, too
                raise UnreadablePayload(
                    f"the WAV file is cut off: {len(chunk)} of {size} bytes of samples are there; send all of it, or"
                    " 0xffffffff as the size where it is not known"
                )
            return _wave_of(form, chunk)
        at += 8 + size + size % 2
    raise UnreadablePayload("the WAV file has no samples: its chunk `data` is missing")


def _wave_of(form: bytes, data: memoryview) -> _Wave | None:
    if len(form) < 16:
        raise UnreadablePayload("the WAV file has no format: its chunk `fmt ` is missing or cut off")
    tag, count, rate, _, _, bits = struct.unpack_from("<HHIIHH", form)
    if tag == _EXTENSIBLE and len(form) == 26:
        (tag,) = struct.unpack_from("<H", form, 24)
    if (tag == _PCM and bits in (8, 16, 24, 32)) or (tag == _FLOAT and bits in (32, 64)):
        if not 1 <= count <= _MOST_CHANNELS or not 1 <= rate <= _FASTEST:
            raise UnreadablePayload(f"the WAV file says that it has {count} channels and {rate} samples a second")
        return _Wave(tag == _FLOAT, bits // 8, count, rate, data)
    if importlib.util.find_spec("soundfile") is not None:
        return None
    codec = _CODECS.get(tag, f"the codec {tag:#06x}" if tag not in (_PCM, _FLOAT) else "")
    raise UnreadablePayload(
        f"the WAV file has samples of {bits} bits{f' in {codec}' if codec else ''}; PCM of 8, 16, 24 and 32 bits and"
        " floats of 32 and 64 are read"
    )


def _decode_wave(wave: _Wave) -> Audio:
    data = wave.data[: wave.frames * wave.width * wave.channels]
    if wave.floats:
        with np.errstate(over="ignore", invalid="ignore"):  # the result is checked
            values = np.frombuffer(data, f"<f{wave.width}").astype(np.float32)  # a copy, which may be written to
    elif wave.width == 1:  # unsigned, unlike all others
        values = (np.frombuffer(data, np.uint8).astype(np.float32) - np.float32(128)) / np.float32(128)
    elif wave.width == 3:
        padded = np.zeros((wave.frames * wave.channels, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        values = padded.view("<i4")[:, 0].astype(np.float32) / np.float32(1 << 31)
    else:
        values = np.frombuffer(data, f"<i{wave.width}").astype(np.float32) / np.float32(1 << (8 * wave.width - 1))
    return Audio(np.ascontiguousarray(values.reshape(-1, wave.channels).T), wave.rate)


def _by_soundfile(encoded: bytes | bytearray, admit: Callable[[int], None] | None) -> Audio:
    told = _named(encoded, _OTHERS)
    if told:
        raise UnreadablePayload(f"The request is {told}, which is not read as sound here: {_TAKEN}")
    known = _named(encoded, _KNOWN)
    try:
        import soundfile
    except (ImportError, OSError) as error:  # OSError: without libsndfile
        if not known:
            raise UnreadablePayload(f"The request's {len(encoded)} bytes are not a sound: send WAV") from None
        missing = (
            "soundfile is not installed" if isinstance(error, ImportError) else f"soundfile does not load: {error}"
        )
        raise UnreadablePayload(
            f"The request is a file of the format {known}, and {missing} (pip install 'tsctl[audio]'): send WAV"
        ) from None
    try:
        with soundfile.SoundFile(io.BytesIO(encoded)) as file:
            if not 0 <= file.frames < _UNKNOWN or not file.channels or not file.samplerate:
                why = "does not say how long it is: encode it into a file, not into a pipe"
                raise UnreadablePayload(f"the {known or 'sound'} file {why}")
            _bound(file.frames, file.channels, admit)
            values = file.read(file.frames, dtype="float32", always_2d=True)
            short = len(values) < file.frames and (file.format != "MP3" or _is_counted(encoded))
            if short or (known == "Ogg" and _is_cut(encoded, file.frames)):
                of = f" of {file.frames}" if len(values) < file.frames else ""
                name = known or "sound"
                raise UnreadablePayload(f"the {name} file is cut off after {len(values)}{of} samples: send all of it")
            return Audio(np.ascontiguousarray(values.T), int(file.samplerate))
    except (MemoryError, UnreadablePayload, TooManyPixels):
        raise
    except Exception as error:  # libsndfile's own, and of NumPy for a length that is none
        what = f"file of the format {known} is damaged" if known else f"{len(encoded)} bytes are not a sound"
        why = str(getattr(error, "error_string", error)).rstrip(". ")  # its whole text names an object's address
        raise UnreadablePayload(f"The request's {what} ({why}): {_TAKEN}") from error


def _is_counted(encoded: bytes | bytearray) -> bool:
    """Return whether an MP3 file says how long it is; else libsndfile has guessed that by its first frame."""
    begin = 10 + (encoded[6] << 21 | encoded[7] << 14 | encoded[8] << 7 | encoded[9]) if encoded[:3] == b"ID3" else 0
    first = encoded[begin : begin + 64]
    return b"Xing" in first or b"Info" in first


def _is_cut(encoded: bytes | bytearray, frames: int) -> bool:
    """Return whether an Ogg file ends within its last page, or before its first samples (RFC 3533, section 6).

    Pages that end a stream say so, but a recorder that is stopped writes none: a file of whole pages is taken.
    """
    at = encoded.rfind(b"OggS\0")
    head = encoded[at : at + 27]
    if len(head) < 27:
        return True
    sizes = encoded[at + 27 : at + 27 + head[26]]
    return at + 27 + head[26] + sum(sizes) > len(encoded) or not (frames or head[5] & 4)


def _named(encoded: bytes | bytearray, known: tuple[tuple[int, bytes, str], ...]) -> str:
    return next((name for at, mark, name in known if encoded[at : at + len(mark)] == mark), "")
