"""Archives that mean no good, generated."""

import gzip
import io
import os
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable

Build = Callable[[], bytes]


def zip_of(*members: tuple[str, bytes], mode: int = 0o100644, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Make a zip; `mode` is the Unix mode of every member."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = method
            archive.writestr(info, content)
    return out.getvalue()


def tar_of(*members: tuple[str, bytes], kind: bytes = tarfile.REGTYPE, target: str = "") -> bytes:
    """Make a gzipped tar; `kind` is the type of every member, `target` what a link points to."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.GNU_FORMAT) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zip_link_then_file() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        link = zipfile.ZipInfo("d")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, tempfile.gettempdir())
        archive.writestr("d/" + OUTSIDE.rpartition("/")[2], b"x")
    return out.getvalue()


def zip_twice(first: str, second: str) -> bytes:
    """Make a zip with two members, even of one name."""
    placeholder = "\x7f" * len(second.encode())
    return zip_of((first, b"one"), (placeholder, b"two")).replace(placeholder.encode(), second.encode())


def zip_without_a_name() -> bytes:
    """Make a zip whose member has an empty name, and what was its name as a comment."""
    data = bytearray(zip_of(("a", b"x")))
    central = data.index(b"PK\x01\x02")
    struct.pack_into("<HHH", data, central + 28, 0, 0, 1)  # lengths of the name, the extra field, the comment
    return bytes(data)


def zip_with_flags(flags: int) -> bytes:
    """Set general purpose bits in both headers of a zip with one member."""
    data = bytearray(zip_of(("a.txt", b"hello")))
    local, central = data.index(b"PK\x03\x04"), data.index(b"PK\x01\x02")
    for offset in (local + 6, central + 8):
        struct.pack_into("<H", data, offset, struct.unpack_from("<H", data, offset)[0] | flags)
    return bytes(data)


def zip_that_lies(size: int, content: bytes) -> bytes:
    """Make a zip whose headers claim another size for its one member."""
    data = bytearray(zip_of(("a.txt", content)))
    local, central = data.index(b"PK\x03\x04"), data.index(b"PK\x01\x02")
    struct.pack_into("<L", data, local + 22, size)
    struct.pack_into("<L", data, central + 24, size)
    return bytes(data)


def zip_of_broken(method: int) -> bytes:
    """Make a zip whose member's compressed bytes are noise."""
    content = bytes(range(256)) * 8
    data = bytearray(zip_of(("a.txt", content), method=method))
    start, end = data.index(b"a.txt") + 5, data.index(b"PK\x01\x02")
    middle = (start + end) // 2
    data[middle - 20 : middle + 20] = bytes(range(100, 140))
    return bytes(data)


def tar_with_size(kind: bytes, size: int) -> bytes:
    """Make a tar whose one header claims this size, which may be negative."""
    info = tarfile.TarInfo("a")
    info.type = kind
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = tarfile.itn(size, 12, tarfile.GNU_FORMAT)  # type: ignore[attr-defined]
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return gzip.compress(bytes(header) + bytes(512))


def tar_with_large_header(size: int) -> bytes:
    """Make a tar with an extended header of `size` zero bytes, which compress to nearly nothing."""
    extended, member = tarfile.TarInfo("x"), tarfile.TarInfo("a")
    extended.type, extended.size = tarfile.XHDTYPE, size
    return gzip.compress(extended.tobuf() + bytes(-(-size // 512) * 512) + member.tobuf() + bytes(1024))


def zip_of_a_million(count: int = 1_000_000) -> bytes:
    """Make a zip with nothing but a directory of so many members."""
    central = zip_of(("a", b""))
    start, end = central.index(b"PK\x01\x02"), central.index(b"PK\x05\x06")
    entry, local = central[start:end], central[:start]
    size = len(entry) * count
    large = b"PK\x06\x06" + struct.pack("<QHHLLQQQQ", 44, 45, 45, 0, 0, count, count, size, len(local))
    locator = b"PK\x06\x07" + struct.pack("<LQL", 0, len(local) + size, 1)
    tail = b"PK\x05\x06" + struct.pack("<HHHHLLH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return local + entry * count + large + locator + tail


def tar_of_a_million(count: int = 100_000) -> bytes:
    """Make a tar of the same empty directory, so many times (a million would take the test a second)."""
    info = tarfile.TarInfo("a")
    info.type = tarfile.DIRTYPE
    return gzip.compress(info.tobuf() * count, compresslevel=1)


def zip_overlapping(count: int = 8) -> bytes:
    """Make a zip whose members all are the same bytes."""
    data = zip_of(("a", bytes(200)))
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    entries = b"".join(data[start:end].replace(b"a", b"%c" % (97 + number)) for number in range(count))
    tail = struct.pack("<HHHHLLH", 0, 0, count, count, len(entries), start, 0)
    return data[:start] + entries + b"PK\x05\x06" + tail


def zip_with_two_names(local: str, central: str) -> bytes:
    """Make a zip that names its member differently in its two headers."""
    data = zip_of((central, b"x"))
    return data.replace(central.encode(), local.encode(), 1)


def zip64(content: bytes, claimed: int | None = None) -> bytes:
    """Make a zip with 64-bit sizes, which may claim another size in its directory."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, archive.open("a.txt", "w", force_zip64=True) as file:
        file.write(content)
    data = bytearray(out.getvalue())
    if claimed is not None:
        central = data.index(b"PK\x01\x02")
        struct.pack_into("<L", data, central + 24, 0xFFFFFFFF)
        extra = struct.pack("<HHQ", 1, 8, claimed)
        struct.pack_into("<H", data, central + 30, len(extra))
        place = central + 46 + len("a.txt")
        data[place:place] = extra
        end = data.index(b"PK\x05\x06")
        struct.pack_into("<L", data, end + 12, end - central)
    return bytes(data)


def tar_of_pax(**headers: str) -> bytes:
    """Make a tar whose one member has these extended headers."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("a")
        info.pax_headers = headers
        archive.addfile(info)
    return out.getvalue()


def tar_of_digits(count: int) -> bytes:
    """Make a tar with an extended header of nothing but digits."""
    extended, member = tarfile.TarInfo("x"), tarfile.TarInfo("a")
    extended.type, extended.size = tarfile.XHDTYPE, count
    return gzip.compress(extended.tobuf() + b"1" * count + bytes(-count % 512) + member.tobuf() + bytes(1024))


def tar_with_name(name: str) -> bytes:
    """Make the header of a long name, without the member that it belongs to."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, len(name) + 1
    return info.tobuf(tarfile.GNU_FORMAT) + name.encode().ljust(512, b"\0")


def tar_of_raw(*members: bytes) -> bytes:
    return gzip.compress(b"".join(members) + bytes(1024))


def tar_header(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info.tobuf(tarfile.GNU_FORMAT)


def cut(data: bytes, share: float = 0.6) -> bytes:
    return data[: int(len(data) * share)]


OUTSIDE = f"{tempfile.gettempdir()}/tsctl-evil-{os.getpid()}"  # a file that must never appear

NAMES = {
    "climbs": "../evil",
    "climbs later": "a/../../evil",
    "is absolute": OUTSIDE,
    "has a backslash": "..\\evil",
    "has a part too long for a file": "x" * 300,
    "is too long for a path": "/".join(["x" * 200] * 40),
}

HOSTILE: dict[str, Build] = {
    **{f"a zip member that {what}": lambda name=name: zip_of((name, b"x")) for what, name in NAMES.items()},  # type: ignore[misc]
    **{f"a tar member that {what}": lambda name=name: tar_of((name, b"x")) for what, name in NAMES.items()},  # type: ignore[misc]
    "a zip directory that climbs": lambda: zip_of(("../evil/", b"")),
    "a tar directory that climbs": lambda: tar_of(("../evil", b""), kind=tarfile.DIRTYPE),
    "a zip member with a zero byte": lambda: zip_twice("b", "a.txt\0.py"),
    "a zip member without a name": zip_without_a_name,
    "a zip name that is no text": lambda: zip_of(("é.txt", b"x")).replace("é".encode(), b"\xff\xfe"),
    "a zip with a symbolic link": lambda: zip_of(("link", b"/etc/passwd"), mode=0o120777),
    "a zip with a device": lambda: zip_of(("device", b""), mode=0o020666),
    "a tar with a symbolic link": lambda: tar_of(("link", b""), kind=tarfile.SYMTYPE, target="/etc/passwd"),
    "a tar with a hard link": lambda: tar_of(("link", b""), kind=tarfile.LNKTYPE, target="/etc/passwd"),
    "a tar with a character device": lambda: tar_of(("device", b""), kind=tarfile.CHRTYPE),
    "a tar with a block device": lambda: tar_of(("device", b""), kind=tarfile.BLKTYPE),
    "a tar with a pipe": lambda: tar_of(("pipe", b""), kind=tarfile.FIFOTYPE),
    "a zip with a name twice": lambda: zip_twice("a.txt", "a.txt"),
    "a zip with a file below a file": lambda: zip_of(("a", b"x"), ("a/b", b"x")),
    "a zip with a directory over a file": lambda: zip_of(("a", b"x"), ("a/", b"")),
    "a zip with a file over a directory": lambda: zip_of(("a/b", b"x"), ("a", b"")),
    "a tar with a name twice": lambda: tar_of(("a", b"x"), ("a", b"y")),
    "a tar with one file under two names": lambda: tar_of(("a/b", b"x"), ("a/./b", b"y")),
    "a zip with too many files": lambda: zip_of(*((f"f{number}", b"") for number in range(11))),
    "a zip with too many directories": lambda: zip_of(*((f"d{number}/", b"") for number in range(11))),
    "a tar with too many files": lambda: tar_of(*((f"f{number}", b"") for number in range(11))),
    "a zip with too many bytes": lambda: zip_of(("a", bytes(600)), ("b", bytes(600))),
    "a tar with too many bytes": lambda: tar_of(("a", bytes(600)), ("b", bytes(600))),
    "a zip that unpacks to more than it says": lambda: zip_that_lies(10, bytes(5000)),
    "a tar that says less than nothing": lambda: tar_with_size(tarfile.XHDTYPE, -1024),
    "a tar with a name of less than nothing": lambda: tar_with_size(tarfile.GNUTYPE_LONGNAME, -512),
    "a tar that says more than it has": lambda: tar_with_size(tarfile.REGTYPE, 900),
    "a tar with a header of 5 MB": lambda: tar_with_large_header(5_000_000),
    "an encrypted zip": lambda: zip_with_flags(0x1),
    "a zip with a compression nobody has": lambda: zip_of(("a", b"x"), method=0).replace(
        b"PK\x01\x02\x14\x03\x14\0\0\0\0\0", b"PK\x01\x02\x14\x03\x14\0\0\0\x63\0"
    ),
    "a zip of broken deflate": lambda: zip_of_broken(zipfile.ZIP_DEFLATED),
    "a zip of bzip2": lambda: zip_of(("a", b"x"), method=zipfile.ZIP_BZIP2),
    "a zip of lzma": lambda: zip_of(("a", b"x"), method=zipfile.ZIP_LZMA),
    "a zip of a million members": zip_of_a_million,
    "a tar of many members": tar_of_a_million,
    "a zip with more directories than it says": lambda: zip_of(("a/b/c/d/e/f/g/h/i/j/k", b"")),
    "a tar with more directories than it says": lambda: tar_of(("a/b/c/d/e/f", b""), ("g/h/i/j/k", b"")),
    "a zip of overlapping members": zip_overlapping,
    "a zip with two names for a member": lambda: zip_with_two_names("a.txt", "b.txt"),
    "a zip that names a member outside in one header": lambda: zip_with_two_names("a/evil", "../evil"),
    "a zip of 64 bits that unpacks to too much": lambda: zip64(bytes(5000)),
    "a zip of 64 bits that says less than nothing": lambda: zip64(b"x" * 5000, 2**64 - 1),
    "a zip bomb": lambda: zip_of(("a", bytes(10_000_000))),
    "a tar bomb": lambda: tar_of(("a", bytes(10_000_000))),
    "a zip with a link and then a file below it": zip_link_then_file,
    "a tar with a link and then a file below it": lambda: tar_of_raw(
        tar_header("d", tarfile.SYMTYPE, "/tmp"), tar_header("d/evil")
    ),
    "a tar with a link over a file": lambda: tar_of_raw(tar_header("a"), tar_header("a", tarfile.SYMTYPE, "/tmp")),
    "a tar with a hard link within": lambda: tar_of_raw(tar_header("a"), tar_header("b", tarfile.LNKTYPE, "a")),
    "a tar with a type that nobody has": lambda: tar_of_raw(tar_header("a", b"Z")),
    "a tar with an old sparse file": lambda: tar_of_raw(tar_header("a", tarfile.GNUTYPE_SPARSE)),
    "a tar with a sparse file": lambda: tar_of_pax(**{"GNU.sparse.map": "0,0", "GNU.sparse.size": str(10**15)}),
    "a tar with a size of 30 digits": lambda: tar_of_pax(size="9" * 30),
    "a tar with a header of digits": lambda: tar_of_digits(10_000),
    "a tar with a header of many digits": lambda: tar_of_digits(1_000_000),
    "a tar that climbs in an extended header": lambda: tar_of_pax(path="../evil"),
    "a tar with a zero byte in an extended header": lambda: tar_of_pax(path="a\0b"),
    "a tar of long names of long names": lambda: tar_of_raw(*[tar_with_name("x" * 300)] * 50),
    "a tar with a damaged header within": lambda: tar_of_raw(tar_header("a"), b"x" * 512, tar_header("b")),
    "a tar with something after its end": lambda: tar_of_raw(tar_header("a"), bytes(1024), tar_header("b")),
    "a tar with a bomb after its end": lambda: tar_of_raw(tar_header("a"), bytes(20_000_000)),
    "a tar with another checksum": lambda: tar_of(("a", b"x"))[:-8] + bytes(8),
    "a tar with junk after it": lambda: tar_of(("a", b"x")) + b"junk",
    "a tar that is only its beginning": lambda: tar_of(("a", b"x"))[:10],
    "a zip of a directory cut from its files": lambda: zip_of(("a", b"x"))[zip_of(("a", b"x")).index(b"PK\x01\x02") :],
    "a zip of broken bzip2": lambda: zip_of_broken(zipfile.ZIP_BZIP2),
    "a zip of broken lzma": lambda: zip_of_broken(zipfile.ZIP_LZMA),
    "a zip cut short": lambda: cut(zip_of(("a", b"x" * 100))),
    "a tar cut short": lambda: cut(tar_of(("a", bytes(range(256)) * 3))),
    "a gzip that is no tar": lambda: gzip.compress(b"just text" * 100),
    "a picture": lambda: b"\x89PNG\r\n\x1a\n",
    "two letters": lambda: b"PK",
    "an empty file": lambda: b"",
}
