"""Bodies that may cost the event loop much, of any size: each kind makes one request.

The sizes are those of the body; what a limit refuses is answered 400 or 413, and that must be cheap, too. Extensions
add theirs: `sized` of their protocol, and `kinds` in tests/extensions/NAME/bodies.py.
"""

import gzip
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, islice
from urllib.parse import quote_from_bytes

from tests.e2e.served import Served
from tests.kit.protocols import PROTOCOLS
from tests.kit.shelf import modules
from tests.lab.benchmarks.schemas import Body

MIB = 2**20
JSON, IMAGE = "application/json", "image/png"
URLENCODED = "application/x-www-form-urlencoded"
BOUNDARY = "b-8f3a-4d1e-boundary"
MULTIPART = f"multipart/form-data; boundary={BOUNDARY}"
ROOM = 1024  # bytes that all but the data of a form with a few parts takes
DECLARED = "x-int32"  # the model that takes tensors; "sized" takes any JSON
_ANY = 1024  # bytes: the names are those of bodies of any size


@dataclass
class Asked:
    """A request, and the status that is expected.

    Attributes:
        size: bytes of the body.
        status: 0 where a limit may be the answer (400, 413), or not (200).
        control: it goes to the control socket.
        send: sends it by another protocol, which copies a body twice, and returns the HTTP status that the answer
            stands for; None for HTTP.
    """

    head: bytes
    body: bytes
    size: int
    status: int = 200
    control: bool = False
    send: Callable[[Served], int] | None = None


Kind = Callable[[int], Asked]
Bodies = Callable[[int], Iterator[tuple[str, Body]]]


def request(
    body: bytes,
    content_type: str,
    *,
    target: str = "/predictions/sized",
    status: int = 200,
    method: str = "POST",
    control: bool = False,
    headers: bytes = b"",
) -> Asked:
    head = head_of(method, target, content_type, f"Content-Length: {len(body)}")
    return Asked(head[:-2] + headers + b"\r\n", body, len(body), status, control)


def head_of(method: str, target: str, content_type: str, length: str) -> bytes:
    lines = (f"{method} {target} HTTP/1.1", "Host: a", f"Content-Type: {content_type}", length, "", "")
    return "\r\n".join(lines).encode()


def filled(pattern: bytes, size: int) -> bytes:
    return (pattern * (size // len(pattern) + 1))[:size]


def whole(pattern: bytes, size: int) -> bytes:
    """As often as it fits."""
    return pattern * (size // len(pattern))


def form(*parts: tuple[str, bytes]) -> bytes:
    opened = "--" + BOUNDARY
    said = [f"{opened}\r\n{headers}\r\n\r\n".encode() + value + b"\r\n" for headers, value in parts]
    return b"".join(said) + f"{opened}--\r\n".encode()


def part(value: bytes, name: str = "p", further: str = "") -> tuple[str, bytes]:
    return f'Content-Disposition: form-data; name="{name}"{further}', value


@cache
def image() -> bytes:
    """Return a fake image of half a megabyte, percent-encoded."""
    return quote_from_bytes(os.urandom(512 * 1024)).encode()


def _fields_of_escapes(size: int) -> bytes:
    return b"&".join(b"n%d=" % number + whole(b"%41", size // 256 - 8) for number in range(256))


def _four_images(size: int) -> bytes:
    return form(*(part(os.urandom((size - ROOM) // 4), f"p{number}", '; filename="x"') for number in range(4)))


def _parts_of_nothing(size: int) -> bytes:
    return whole(form(part(b"")).removesuffix(f"--{BOUNDARY}--\r\n".encode()), size)


def _large_headers(size: int) -> bytes:
    return form(*[part(b"", further="\r\nA: " + ";" * 4096)] * max(1, min(255, size // 4300)), ("A: b", b""))


def _options(size: int) -> bytes:
    many = part(b"", further=';a="b"' * 97 + "\r\n" + "A" * 3000 + ": " + ";" * 4096)
    parts = [many] * max(1, min(255, size // len(many[0])))
    return form(*parts, part(bytes(max(0, size - ROOM - (len(many[0]) + ROOM) * len(parts)))))


def _short_boundary(size: int) -> bytes:
    begun = b"--b\r\nContent-Disposition: form-data; name=p\r\n\r\n"
    return begun + whole(b"\r\n--", size - ROOM) + b"\r\n--b--"


def _of(name: str, content_type: str, body: Callable[[int], bytes], **further: object) -> tuple[str, Kind]:
    return name, lambda size: request(body(size), content_type, **further)  # type: ignore[arg-type]


def _form_of(name: str, body: Callable[[int], bytes], **further: object) -> tuple[str, Kind]:
    return _of(f"urlencoded: {name}", URLENCODED, body, **further)


def _parts_of(name: str, body: Callable[[int], bytes], **further: object) -> tuple[str, Kind]:
    return _of(f"multipart: {name}", MULTIPART, body, **further)


def _bodies() -> Iterator[tuple[str, Kind]]:
    yield _of("raw bytes", IMAGE, bytes)
    yield _of("raw bytes, recorded", IMAGE, bytes, target="/predictions/recorded")
    yield _of("JSON", JSON, lambda size: b'{"a": "' + b"x" * (size - 9) + b'"}')
    yield _of("text", "text/plain; charset=utf-8", partial(filled, b"line of text\n"))
    yield _form_of("a=&a=&…", partial(filled, b"a=&"), status=400)
    yield _form_of("&&&…", partial(filled, b"&"), status=400)
    yield _form_of("256 fields of escapes", _fields_of_escapes)
    yield _form_of("a=%41%41…", lambda size: b"a=" + whole(b"%41", size - 2))
    yield _form_of("escapes, the last one broken", lambda size: b"a=" + whole(b"%41", size - 4) + b"%4", status=400)
    yield _form_of("a=+++…", lambda size: b"a=" + filled(b"+", size - 2))
    yield _form_of("a=%41====…", lambda size: b"a=%41" + filled(b"=", size - 5))
    yield _form_of("one field", lambda size: b"a=" + filled(b"x", size - 2))
    yield _form_of("one name", lambda size: filled(b"n", size - 2) + b"=1", status=400)
    yield _form_of("JSON, which is none", lambda size: b'{"a": "' + filled(b"x", size - 9) + b'"}')
    yield _form_of("an image", lambda size: b"data=" + filled(image(), size - 8).rsplit(b"%", 1)[0])
    yield _parts_of("one image", lambda size: form(part(bytes(size - ROOM), "data", '; filename="x"')))
    yield _parts_of("four images", _four_images)
    yield _parts_of("parts of nothing", _parts_of_nothing, status=400)
    yield _parts_of(
        "256 parts", lambda size: form(*(part(bytes(max(0, size // 256 - 100)), f"p{n}") for n in range(256)))
    )
    yield _parts_of("headers of 4 KB", _large_headers, status=400)
    yield _parts_of("97 options in each part", _options)
    yield _parts_of(
        "a disposition of semicolons", lambda size: form(part(bytes(size - 8 * ROOM), further=";" * 4096)), status=400
    )
    near = f"\r\n--{BOUNDARY[:-1]}x".encode()
    yield _parts_of("nearly boundaries", lambda size: form(part(whole(near, size - ROOM))))
    yield _parts_of("line ends", lambda size: form(part(whole(b"\r\n", size - ROOM))))
    yield _of("multipart: a boundary of one byte", "multipart/form-data; boundary=b", _short_boundary)
    yield _parts_of("cut short", lambda size: form(part(bytes(size - ROOM)))[:-30], status=400)
    yield _of("a content type of semicolons", "multipart/form-data" + ";" * 60000, bytes, status=400)
    named = part(b"sized", "model_name")
    yield _of(
        "/invocations: the form names the model", MULTIPART,
        lambda size: form(part(bytes(size - ROOM), "data"), named), target="/invocations",
    )  # fmt: skip
    huge = partial(filled, b"\xff")
    yield _of(
        "/invocations: a huge name", URLENCODED, lambda size: b"model_name=" + huge(size - 11), target="/invocations",
        status=400,
    )  # fmt: skip
    query = "&".join(f"q{number}=%41" for number in range(200))
    yield _of("/models/sized/invoke: fields of the query", IMAGE, bytes, target=f"/models/sized/invoke?{query}")
    for name, member, target in (
        ("KServe 1", b"instances", "/v1/models/sized:predict"), ("KServe 2", b"inputs", "/v2/models/sized/infer"),
    ):  # fmt: skip
        text = b'{"%b": ["' % member
        yield _of(name, JSON, lambda size, text=text: text + b"x" * (size - 20) + b'"]}', target=target)  # type: ignore[misc]
    yield _of("numbers in JSON to a typed handler", JSON, _tensor_in_json, target="/v2/models/typed/infer")


def _tensor_in_json(size: int) -> bytes:
    count = (min(size, MIB) - ROOM) // 2  # more JSON takes longer: its syntax is checked in one go
    tensor = f'{{"name":"xs","datatype":"UINT8","shape":[{count}],"data":[{",".join("1" * count)}]}}'
    return f'{{"inputs":[{tensor}]}}'.encode()


def _heads() -> Iterator[tuple[str, Kind]]:
    """Yield heads that are large, whatever the size is; there is no body."""

    def bodiless(name: str, target: str = "/predictions/sized", **further: object) -> tuple[str, Kind]:
        return _of(name, IMAGE, lambda size: b"", target=target, **further)

    yield bodiless("a target of 8 KiB: escapes", "/predictions/sized/1.0/" + "%FF" * 2700)
    yield bodiless("a target of 1 KiB: segments", "/predictions/sized/1.0" + "/%41" * 250)
    yield bodiless("a target of 60 KiB: segments", "/predictions/sized/1.0" + "/%41" * 15000, status=414)
    yield bodiless("a query of 8 KiB: fields", "/models/sized/invoke?" + "a=&" * 2600, status=400)
    yield bodiless("a query of 8 KiB: escapes", "/models/sized/invoke?a=" + "%FF" * 2700)
    yield bodiless("a query of 60 KiB: escapes", "/models/sized/invoke?a=" + "%FF" * 20000, status=414)
    many = b"".join(b"X-%d: %b\r\n" % (number, b"x" * 600) for number in range(95))
    yield bodiless("headers of 60 KiB", headers=many)
    yield bodiless("a deadline of 60 000 digits", headers=b"x-request-deadline-ms: " + b"9" * 60000 + b"\r\n")
    yield "a host of 60 KiB", _long_host


def _long_host(size: int) -> Asked:
    asked = request(b"", IMAGE, status=400)
    asked.head = asked.head.replace(b"Host: a", b"Host: " + b"%41" * 20000 + b"?")
    return asked


def _binary_tensor(datatype: str, model: str, size: int) -> Asked:
    """Return a request whose one input, `xs`, follows the JSON as bytes."""
    length = (size - ROOM) // 4 * 4
    shape = [length // (1 if datatype == "UINT8" else 4)]
    tensor = {"name": "xs", "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": length}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    told = f"Inference-Header-Content-Length: {len(head)}\r\n".encode()
    target = f"/v2/models/{model}/infer"
    return request(head + bytes(length), "application/octet-stream", target=target, headers=told)


def _chunked(content_type: str, chunk: int, size: int) -> Asked:
    head = head_of("POST", "/predictions/sized", content_type, "Transfer-Encoding: chunked")
    data = whole(b"%41", chunk) + b"=" * (chunk % 3)
    one = b"%x\r\n%b\r\n" % (len(data), data)
    size = size if chunk > 1 else min(size, MIB)
    return Asked(head, b"2\r\na=\r\n" + one * (size // chunk - 1) + b"0\r\n\r\n", size)


def _managing(method: str, path: str) -> Iterator[tuple[str, Kind]]:
    """Yield a command's document, and one that is as large as it may be."""

    def document(numbers: int) -> bytes:
        return b'{"' + b"x" * 16 + b'": [' + b"1e9," * (numbers // 4)

    own = {"target": path, "method": method, "control": True}
    yield _of(f"{method} {path}, JSON", JSON, lambda size: document(size - 40) + b"1]}", **own, status=413)
    small = lambda size: document(min(size, 32 * 1024 - 64)) + b"1]}"  # noqa: E731
    yield _of(f"{method} {path}, JSON of 32 KiB", JSON, small, **own, status=400)


def _kinds() -> Iterator[tuple[str, Kind]]:
    yield from _bodies()
    for name, datatype, model in (
        ("binary data: UINT8 to a typed handler", "UINT8", "typed"),
        ("binary data: FP32 to a typed handler", "FP32", "typed"),
        ("binary data: FP32 to a model that declares nothing", "FP32", "sized"),
    ):
        yield name, partial(_binary_tensor, datatype, model)
    for name, content_type, chunk in (
        ("chunked: 32 KiB", IMAGE, 32 * 1024), ("chunked: a form of escapes, 32 KiB", URLENCODED, 32 * 1024),
        ("chunked: 64 bytes", IMAGE, 64), ("chunked: one byte", IMAGE, 1),
    ):  # fmt: skip
        yield name, partial(_chunked, content_type, chunk)
    yield from _heads()
    for method, path in (("POST", "/models"), ("PUT", "/models/sized"), ("PATCH", "/models/sized")):
        yield from _managing(method, path)


def _of_schemas() -> Iterator[tuple[str, Kind]]:
    """Yield requests with the worst bodies of each schema (schemas.py), which extensions add."""
    groups = [*(protocol.sized() for protocol in PROTOCOLS), *(extended.kinds() for extended in modules("bodies"))]
    for what, bodies, make in chain.from_iterable(groups):
        for number, (name, _) in enumerate(bodies(_ANY)):
            yield f"{what} {name}", partial(_nth, bodies, make, number)


def _nth(bodies: Bodies, make: Callable[[bytes, int], Asked], number: int, size: int) -> Asked:
    _, body = next(islice(bodies(size - ROOM), number, None))
    return make(body(), size)


def over_http(target: str, packed: bool, body: bytes, size: int) -> Asked:
    """Return a request with a body, as gzip if `packed`; it is of `size` bytes, or more."""
    sent = gzip.compress(body, 1, mtime=0) if packed else body
    coding = b"Content-Encoding: gzip\r\n" if packed else b""
    asked = request(sent, JSON, target=target, status=0, headers=coding)
    asked.size = max(size, len(sent))
    return asked


def kinds() -> dict[str, Kind]:
    """Return the kinds of bodies by name; those of extensions ask for this module, too."""
    return dict(chain(_kinds(), _of_schemas()))
