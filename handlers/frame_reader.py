"""The frames (wire.py) of a byte stream."""

from collections.abc import Iterator

from tsctl.handlers.wire import LENGTH, Frame


class FrameReader:
    """Splits a byte stream into the bytes of messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Consume received bytes; yield each complete message."""
        buffer = self._buffer
        if not buffer and len(data) >= LENGTH.size and LENGTH.unpack_from(data)[0] == len(data) - LENGTH.size:
            yield data[LENGTH.size :]  # the usual case: exactly one frame
            return
        buffer += data
        start = 0
        while len(buffer) - start >= LENGTH.size:
            end = start + LENGTH.size + LENGTH.unpack_from(buffer, start)[0]
            if len(buffer) < end:
                break
            if not start and len(buffer) == end:  # a large frame at the end of the buffer is not copied
                self._buffer = bytearray()
                yield memoryview(buffer)[LENGTH.size :]
                return
            yield bytes(memoryview(buffer)[start + LENGTH.size : end])
            start = end
        if start:
            del buffer[:start]
