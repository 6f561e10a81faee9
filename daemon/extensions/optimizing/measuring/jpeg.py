"""The size of a JPEG, from its header (ITU-T T.81, annex B): this process has no library for images."""

LEAST_SIDE = 1024  # pixels of the shorter side: `scaled_decode` reads at a half from four times 256 on
_START = b"\xff\xd8"
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # start of frame; those three are tables
_SCAN = 0xDA  # the pixels follow


def is_large_jpeg(body: bytes) -> bool:
    """Return whether a body is a JPEG that `scaled_decode` would decode at a part of its size."""
    size = jpeg_size(body)
    return size is not None and min(size) >= LEAST_SIDE


def jpeg_size(body: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels; None if the body is no JPEG."""
    if not body.startswith(_START):
        return None
    place = len(_START)
    while place + 9 <= len(body) and body[place] == 0xFF:
        marker = body[place + 1]
        if marker == 0xFF:  # a fill byte
            place += 1
        elif marker in _FRAMES:
            height, width = (int.from_bytes(body[place + at : place + at + 2]) for at in (5, 7))
            return width, height
        elif marker == _SCAN:
            return None
        else:
            place += 2 + int.from_bytes(body[place + 2 : place + 4])
    return None
