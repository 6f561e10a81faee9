"""Bodies that may cost the event loop much, of any size: each function makes one request.

The sizes are those of the body; what a limit refuses is answered 400 or 413, and that must be cheap, too.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import quote_from_bytes

from tests.e2e.served import Served

MIB = 2**20
URLENCODED = "application/x-www-form-urlencoded"
BOUNDARY = "b-8f3a-4d1e-boundary"
MULTIPART = f"multipart/form-data; boundary={BOUNDARY}"
ROOM = 1024  # bytes that all but the data of a form with a few parts takes
_PIECE = MIB


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

    name: str
    head: bytes
    pieces: list[bytes] = field(repr=False)
    size: int
    status: int = 200
    control: bool = False
    send: Callable[[Served], int] | None = None


def request(
    name: str,
    body: bytes,
    content_type: str,
    *,
    target: str = "/predictions/sized",
    status: int = 200,
    method: str = "POST",
    control: bool = False,
) -> Asked:
    head = head_of(method, target, content_type, f"Content-Length: {len(body)}")
    return Asked(name, head, [body], len(body), status, control)


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


def disposition(name: str) -> str:
    return f'Content-Disposition: form-data; name="{name}"'


@cache
def image() -> bytes:
    """Return a fake image of half a megabyte, percent-encoded."""
    return quote_from_bytes(os.urandom(512 * 1024)).encode()


def raw(size: int) -> Asked:
    return request("raw bytes", bytes(size), "image/png")


def json_body(size: int) -> Asked:
    return request("JSON", b'{"a": "' + b"x" * (size - 9) + b'"}', "application/json")


def text(size: int) -> Asked:
    return request("text", filled(b"line of text\n", size), "text/plain; charset=utf-8")


def urlencoded_dense_fields(size: int) -> Asked:
    return request("urlencoded: a=&a=&…", filled(b"a=&", size), URLENCODED, status=400)


def urlencoded_dense_separators(size: int) -> Asked:
    return request("urlencoded: &&&…", filled(b"&", size), URLENCODED, status=400)


def urlencoded_most_fields(size: int) -> Asked:
    values = [b"n%d=" % number + whole(b"%41", size // 256 - 8) for number in range(256)]
    return request("urlencoded: 256 fields of escapes", b"&".join(values), URLENCODED)


def urlencoded_dense_escapes(size: int) -> Asked:
    return request("urlencoded: a=%41%41…", b"a=" + whole(b"%41", size - 2), URLENCODED)


def urlencoded_broken_escape(size: int) -> Asked:
    return request(
        "urlencoded: escapes, the last one broken", b"a=" + whole(b"%41", size - 4) + b"%4", URLENCODED, status=400
    )


def urlencoded_plus(size: int) -> Asked:
    return request("urlencoded: a=+++…", b"a=" + filled(b"+", size - 2), URLENCODED)


def urlencoded_equals(size: int) -> Asked:
    return request("urlencoded: a=%41====…", b"a=%41" + filled(b"=", size - 5), URLENCODED)


def urlencoded_plain(size: int) -> Asked:
    return request("urlencoded: one field", b"a=" + filled(b"x", size - 2), URLENCODED)


def urlencoded_name(size: int) -> Asked:
    return request("urlencoded: one name", filled(b"n", size - 2) + b"=1", URLENCODED, status=400)


def urlencoded_json(size: int) -> Asked:
    return request("urlencoded: JSON, which is none", b'{"a": "' + filled(b"x", size - 9) + b'"}', URLENCODED)


def urlencoded_image(size: int) -> Asked:
    encoded = filled(image(), size - 8).rsplit(b"%", 1)[0]
    return request("urlencoded: an image", b"data=" + encoded, URLENCODED)


def multipart_one_part(size: int) -> Asked:
    return request(
        "multipart: one image", form((disposition("data") + '; filename="x"', bytes(size - ROOM))), MULTIPART
    )


def multipart_four_parts(size: int) -> Asked:
    parts = [(disposition(f"p{number}") + '; filename="x"', os.urandom((size - ROOM) // 4)) for number in range(4)]
    return request("multipart: four images", form(*parts), MULTIPART)


def multipart_small_parts(size: int) -> Asked:
    part = form((disposition("p"), b"")).removesuffix(f"--{BOUNDARY}--\r\n".encode())
    return request("multipart: parts of nothing", whole(part, size), MULTIPART, status=400)


def multipart_most_parts(size: int) -> Asked:
    parts = [(disposition(f"p{number}"), bytes(max(0, size // 256 - 100))) for number in range(256)]
    return request("multipart: 256 parts", form(*parts), MULTIPART)


def multipart_large_headers(size: int) -> Asked:
    headers = disposition("p") + "\r\nA: " + ";" * 4096
    parts = [(headers, b"")] * max(1, min(255, size // 4300))
    return request("multipart: headers of 4 KB", form(*parts, ("A: b", b"")), MULTIPART, status=400)


def multipart_options(size: int) -> Asked:
    headers = disposition("p") + ';a="b"' * 97 + "\r\n" + "A" * 3000 + ": " + ";" * 4096
    parts = [(headers, b"")] * max(1, min(255, size // len(headers)))
    return request(
        "multipart: 97 options in each part",
        form(*parts, (disposition("p"), bytes(max(0, size - ROOM - len(headers + ROOM * "-") * len(parts))))),
        MULTIPART,
    )


def multipart_semicolons(size: int) -> Asked:
    headers = disposition("p") + ";" * 4096
    return request(
        "multipart: a disposition of semicolons", form((headers, bytes(size - 8 * ROOM))), MULTIPART, status=400
    )


def multipart_near_misses(size: int) -> Asked:
    value = whole(f"\r\n--{BOUNDARY[:-1]}x".encode(), size - ROOM)
    return request("multipart: nearly boundaries", form((disposition("p"), value)), MULTIPART)


def multipart_returns(size: int) -> Asked:
    return request("multipart: line ends", form((disposition("p"), whole(b"\r\n", size - ROOM))), MULTIPART)


def multipart_short_boundary(size: int) -> Asked:
    body = b"--b\r\nContent-Disposition: form-data; name=p\r\n\r\n" + whole(b"\r\n--", size - ROOM) + b"\r\n--b--"
    return request("multipart: a boundary of one byte", body, "multipart/form-data; boundary=b")


def multipart_no_end(size: int) -> Asked:
    return request("multipart: cut short", form((disposition("p"), bytes(size - ROOM)))[:-30], MULTIPART, status=400)


def invocations(size: int) -> Asked:
    body = form((disposition("data"), bytes(size - ROOM)), (disposition("model_name"), b"sized"))
    return request("/invocations: the form names the model", body, MULTIPART, target="/invocations")


def invocations_name(size: int) -> Asked:
    body = b"model_name=" + filled(b"\xff", size - 11)
    return request("/invocations: a huge name", body, URLENCODED, target="/invocations", status=400)


def invoke(size: int) -> Asked:
    query = "&".join(f"q{number}=%41" for number in range(200))
    return request(
        "/models/sized/invoke: fields of the query", bytes(size), "image/png", target=f"/models/sized/invoke?{query}"
    )


def kserve_v1(size: int) -> Asked:
    body = b'{"instances": ["' + b"x" * (size - 20) + b'"]}'
    return request("KServe 1", body, "application/json", target="/v1/models/sized:predict")


def kserve_v2(size: int) -> Asked:
    body = b'{"inputs": ["' + b"x" * (size - 20) + b'"]}'
    return request("KServe 2", body, "application/json", target="/v2/models/sized/infer")


def tensor_of_bytes(size: int) -> Asked:
    return binary_tensor("binary data: UINT8 to a typed handler", size, "UINT8", "typed")


def tensor_of_floats(size: int) -> Asked:
    return binary_tensor("binary data: FP32 to a typed handler", size, "FP32", "typed")


def tensor_for_lists(size: int) -> Asked:
    return binary_tensor("binary data: FP32 to a model that declares nothing", size, "FP32", "sized")


def tensor_in_json(size: int) -> Asked:
    count = (min(size, MIB) - ROOM) // 2  # more JSON takes longer: its syntax is checked in one go
    document = f'{{"inputs":[{{"name":"xs","datatype":"UINT8","shape":[{count}],"data":[{",".join("1" * count)}]}}]}}'
    body = document.encode()
    return request("numbers in JSON to a typed handler", body, "application/json", target="/v2/models/typed/infer")


def binary_tensor(name: str, size: int, datatype: str, model: str) -> Asked:
    """Return a request whose one input, `xs`, follows the JSON as bytes."""
    length = (size - ROOM) // 4 * 4
    shape = [length // (1 if datatype == "UINT8" else 4)]
    tensor = {"name": "xs", "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": length}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    asked = request(name, head + bytes(length), "application/octet-stream", target=f"/v2/models/{model}/infer")
    asked.head = asked.head[:-2] + f"Inference-Header-Content-Length: {len(head)}\r\n\r\n".encode()
    return asked


def chunked_large(size: int) -> Asked:
    return chunked("chunked: 32 KiB", "image/png", size, 32 * 1024)


def chunked_form(size: int) -> Asked:
    return chunked("chunked: a form of escapes, 32 KiB", URLENCODED, size, 32 * 1024)


def chunked_small(size: int) -> Asked:
    return chunked("chunked: 64 bytes", "image/png", size, 64)


def chunked_tiny(size: int) -> Asked:
    return chunked("chunked: one byte", "image/png", min(size, MIB), 1)


def chunked(name: str, content_type: str, size: int, chunk: int) -> Asked:
    head = head_of("POST", "/predictions/sized", content_type, "Transfer-Encoding: chunked")
    data = whole(b"%41", chunk) + b"=" * (chunk % 3)
    one = b"%x\r\n%b\r\n" % (len(data), data)
    most = max(1, _PIECE // len(one))
    count = size // chunk - 1
    pieces = [one * most] * (count // most) + [one * (count % most)]
    first = b"2\r\na=\r\n"
    return Asked(name, head, [first, *pieces, b"0\r\n\r\n"], size)


def recorded(size: int) -> Asked:
    return request("raw bytes, recorded", bytes(size), "image/png", target="/predictions/recorded")


def headers(size: int) -> Asked:
    del size
    asked = request("headers of 60 KiB", b"", "image/png")
    asked.head = asked.head[:-2] + b"".join(b"X-%d: %b\r\n" % (number, b"x" * 600) for number in range(95)) + b"\r\n"
    return asked


def host(size: int) -> Asked:
    del size
    asked = request("a host of 60 KiB", b"", "image/png", status=400)
    asked.head = asked.head.replace(b"Host: a", b"Host: " + b"%41" * 20000 + b"?")
    return asked


def numbers(size: int) -> Asked:
    del size
    asked = request("a deadline of 60 000 digits", b"", "image/png")
    asked.head = asked.head[:-2] + b"x-request-deadline-ms: " + b"9" * 60000 + b"\r\n\r\n"
    return asked


def target(size: int) -> Asked:
    del size
    return request("a target of 8 KiB: escapes", b"", "", target="/predictions/sized/1.0/" + "%FF" * 2700)


def target_segments(size: int) -> Asked:
    del size
    return request("a target of 1 KiB: segments", b"", "", target="/predictions/sized/1.0" + "/%41" * 250)


def target_too_long(size: int) -> Asked:
    del size
    return request(
        "a target of 60 KiB: segments", b"", "", target="/predictions/sized/1.0" + "/%41" * 15000, status=414
    )


def query_fields(size: int) -> Asked:
    del size
    return request("a query of 8 KiB: fields", b"", "", target="/models/sized/invoke?" + "a=&" * 2600, status=400)


def query_escapes(size: int) -> Asked:
    del size
    return request("a query of 8 KiB: escapes", b"", "", target="/models/sized/invoke?a=" + "%FF" * 2700)


def query_too_long(size: int) -> Asked:
    del size
    return request("a query of 60 KiB: escapes", b"", "", target="/models/sized/invoke?a=" + "%FF" * 20000, status=414)


def content_type_options(size: int) -> Asked:
    return request("a content type of semicolons", bytes(size), "multipart/form-data" + ";" * 60000, status=400)


def managing(method: str, path: str) -> Callable[[int], Asked]:
    def manage(size: int) -> Asked:
        body = b'{"' + b"x" * 16 + b'": [' + b"1e9," * ((size - 40) // 4) + b"1]}"
        return request(
            f"{method} {path}, JSON", body, "application/json", target=path, method=method, control=True, status=413
        )

    manage.__name__ = f"{method} {path}"  # by which one kind is told from another
    return manage


def managing_as_much(method: str, path: str) -> Callable[[int], Asked]:
    def manage_as_much(size: int) -> Asked:
        body = b'{"' + b"x" * 16 + b'": [' + b"1e9," * (min(size, 32 * 1024 - 64) // 4) + b"1]}"
        return request(
            f"{method} {path}, JSON of 32 KiB", body, "application/json", target=path, method=method, control=True,
            status=400 if method != "PUT" else 202,
        )  # fmt: skip

    manage_as_much.__name__ = f"{method} {path}, as much as may be"
    return manage_as_much


def _kinds() -> Iterator[Callable[[int], Asked]]:
    yield from (raw, json_body, text)
    yield from (urlencoded_dense_fields, urlencoded_dense_separators, urlencoded_most_fields, urlencoded_dense_escapes)
    yield from (urlencoded_broken_escape, urlencoded_plus, urlencoded_equals, urlencoded_plain, urlencoded_name)
    yield from (urlencoded_json, urlencoded_image)
    yield from (multipart_one_part, multipart_four_parts, multipart_small_parts, multipart_most_parts)
    yield from (multipart_large_headers, multipart_options, multipart_semicolons, multipart_near_misses)
    yield from (multipart_returns, multipart_short_boundary, multipart_no_end)
    yield from (invocations, invocations_name, invoke, kserve_v1, kserve_v2)
    yield from (tensor_of_bytes, tensor_of_floats, tensor_for_lists, tensor_in_json)
    yield from (chunked_large, chunked_form, chunked_small, chunked_tiny)
    yield from (target, target_segments, target_too_long, query_fields, query_escapes, query_too_long)
    yield from (content_type_options, headers, host, numbers, recorded)
    for method, path in (("POST", "/models"), ("PUT", "/models/sized"), ("PATCH", "/models/sized")):
        yield managing(method, path)
        yield managing_as_much(method, path)


KINDS = tuple(_kinds())
