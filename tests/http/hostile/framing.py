"""Where a request ends: lengths, encodings and chunks, as an attacker writes them.

Whoever sees another end than the proxy in front lets one client's bytes pass for another's request. So
what two readers could read differently is refused. Sections are RFC 9112's.
"""

from tests.http.hostile.outcome import END, Vectors
from tests.http.peer import GET

POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
SEEN = "GET / "


def length(*values: bytes, body: bytes = b"abc") -> bytes:
    return POST + b"".join(b"Content-Length:%b\r\n" % value for value in values) + b"\r\n" + body + GET


def encoding(*values: bytes, rest: bytes = b"") -> bytes:
    lines = b"".join(b"Transfer-Encoding:%b\r\n" % value for value in values)
    return POST + lines + rest + b"\r\n3\r\nabc\r\n0\r\n\r\n" + GET


def chunks(data: bytes) -> bytes:
    return CHUNKED + data + GET


READ = ["POST / abc", SEEN]

LENGTHS: Vectors = {
    "6.2 a length": (length(b" 3"), [*READ]),
    "5 tabs around a length": (length(b"\t3\t"), [*READ]),
    "6.2 leading zeros": (length(b" 0003"), [*READ]),
    "6.2 many leading zeros": (length(b" " + b"0" * 50 + b"3"), [*READ]),
    "6.3 no length is no body": (POST + b"\r\n" + GET, ["POST / ", SEEN]),
    "6.2 a GET may have a body": (POST.replace(b"POST", b"GET") + b"Content-Length: 3\r\n\r\nabc" + GET,
                                  ["GET / abc", SEEN]),
    "6.2 a plus sign": (length(b" +3"), [400]),
    "6.2 a minus sign": (length(b" -3"), [400]),
    "6.2 hexadecimal": (length(b" 0x3"), [400]),
    "6.2 a fraction": (length(b" 3.0"), [400]),
    "6.2 an underscore": (length(b" 1_0", body=b"0123456789"), [400]),
    "6.2 a digit of another alphabet": (length(b" \xb3"), [400]),
    "6.2 a space within": (length(b" 1 1"), [400]),
    "6.2 a vertical tab before": (length(b" \x0b3"), [400]),
    "6.2 a form feed after": (length(b" 3\x0c"), [400]),
    "6.2 a zero byte after": (length(b" 3\0"), [400]),
    "6.2 quoted": (length(b' "3"'), [400]),
    "6.2 empty": (length(b""), [400]),
    "6.2 nothing but a space": (length(b" "), [400]),
    "6.3 a list of equal lengths": (length(b" 3, 3"), [400]),
    "6.3 a list of different lengths": (length(b" 3, 4"), [400]),
    "6.3 a list with nothing after the comma": (length(b" 3,"), [400]),
    "6.3 equal lengths": (length(b" 3", b" 3"), [400]),
    "6.3 different lengths": (length(b" 3", b" 4"), [400]),
    "6.3 nothing, then 3": (length(b" 0", b" 3"), [400]),
    "over the limit, and a space": (length(b" 1001 "), [413]),
    "6.2 2 to the 63": (length(b" 9223372036854775808"), [413]),
    "6.2 2 to the 64": (length(b" 18446744073709551616"), [400]),
    "6.2 2 to the 64, and 3": (length(b" 18446744073709551619"), [400]),
    "5.1 a space before the colon": (POST + b"Content-Length : 3\r\n\r\nabc" + GET, [400]),
    "5.2 folded before the length": (length(b"\r\n 3"), [400]),
    "5.2 folded after the length": (length(b" 3\r\n 4"), [400]),
    "5 an underscore for the hyphen says nothing": (POST + b"Content_Length: 3\r\n\r\n" + GET, ["POST / ", SEEN]),
}  # fmt: skip

ENCODINGS: Vectors = {
    "7.1 chunks": (encoding(b" chunked"), [*READ]),
    "7 the name of an encoding in any case": (encoding(b" ChunKed"), [*READ]),
    "6.1 a GET may have chunks": (encoding(b" chunked").replace(b"POST", b"GET"), ["GET / abc", SEEN]),
    "6.1 a length, then chunks": (POST + b"Content-Length: 3\r\n" + encoding(b" chunked")[len(POST):], [400]),
    "6.1 chunks, then a length": (encoding(b" chunked", rest=b"Content-Length: 3\r\n"), [400]),
    "6.1 chunks, and a length of nothing": (encoding(b" chunked", rest=b"Content-Length: 0\r\n"), [400]),
    "6.1 identity and a length": (encoding(b" identity", rest=b"Content-Length: 3\r\n"), [400]),
    "6.1 in HTTP/1.0": (encoding(b" chunked").replace(b"1.1", b"1.0", 1), [400]),
    "6.1 in HTTP/1.0 with a length": (
        encoding(b" chunked", rest=b"Content-Length: 3\r\n").replace(b"1.1", b"1.0", 1), [400]),
    "6.1 identity": (encoding(b" identity"), [501]),
    "6.1 twice": (encoding(b" chunked", b" chunked"), [400]),
    "6.1 chunks of chunks": (encoding(b" chunked, chunked"), [400]),
    "6.1 something, then chunks": (encoding(b" x, chunked"), [501]),
    "6.1 nothing, then chunks": (encoding(b" ,chunked"), [501]),
    "6.1 gzip, then chunks": (encoding(b" gzip, chunked"), [501]),
    "6.1 identity, then chunks": (encoding(b" identity", b" chunked"), [501]),
    "6.3 chunks, then identity": (encoding(b" chunked, identity"), [400]),
    "6.3 chunks, then identity in a line of its own": (encoding(b" chunked", b" identity"), [400]),
    "6.3 chunks, then nothing": (encoding(b" chunked,"), [400]),
    "6.1 nothing": (encoding(b""), [400]),
    "6.1 nothing, and a length": (encoding(b"", rest=b"Content-Length: 3\r\n"), [400]),
    "6.1 nothing, then chunks in a line of their own": (encoding(b"", b" chunked"), [400]),
    "5.5 a vertical tab before": (encoding(b" \x0bchunked"), [400]),
    "5.5 a form feed after": (encoding(b" chunked\x0c"), [400]),
    "5.5 a zero byte after": (encoding(b" chunked\0"), [400]),
    "5 tabs around": (encoding(b"\tchunked\t"), [400]),
    "7 with a parameter": (encoding(b" chunked;q=1"), [501]),
    "7 quoted": (encoding(b' "chunked"'), [501]),
    "7 a space within": (encoding(b" chunk ed"), [501]),
    "7 nearly the name": (encoding(b" xchunked"), [501]),
    "7 twice the name": (encoding(b" chunkedchunked"), [501]),
    "5.2 folded": (encoding(b"\r\n chunked"), [400]),
    "5.1 a space before the colon": (encoding(b" chunked").replace(b"Encoding:", b"Encoding :"), [400]),
    "5.1 a tab before the colon": (encoding(b" chunked").replace(b"Encoding:", b"Encoding\t:"), [400]),
    "5.1 a vertical tab before the colon": (encoding(b" chunked").replace(b"Encoding:", b"Encoding\x0b:"), [400]),
    "5 an underscore for the hyphen says nothing": (
        POST + b"Transfer_Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc" + GET, [*READ]),
    "7.8 an offer to upgrade, with a length": (
        length(b" 3").replace(b"Host", b"Connection: upgrade\r\nUpgrade: x\r\nHost", 1), ["POST / abc", END]),
    "7.8 an offer to upgrade, with two lengths": (
        length(b" 3", b" 3").replace(b"Host", b"Connection: upgrade\r\nUpgrade: x\r\nHost", 1), [400]),
    "7.8 an offer to upgrade, with chunks": (
        encoding(b" chunked", rest=b"Connection: upgrade\r\nUpgrade: x\r\n"), ["POST / abc", END]),
    "7.8 an offer to upgrade, with a length and chunks": (
        encoding(b" chunked", rest=b"Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 3\r\n"), [400]),
    "7.8 an offer to upgrade, with what is not chunks": (
        encoding(b" x", rest=b"Connection: upgrade\r\nUpgrade: x\r\n"), [501]),
}  # fmt: skip

CHUNKS: Vectors = {
    "7.1 a size with leading zeros": (chunks(b"0" * 40 + b"3\r\nabc\r\n000\r\n\r\n"), [*READ]),
    "7.1 a size in capitals": (chunks(b"A\r\n0123456789\r\n0\r\n\r\n"), ["POST / 0123456789", SEEN]),
    "7.1 what looks like a last chunk within a chunk": (
        chunks(b"a\r\n\r\n0\r\n\r\nGET\r\n0\r\n\r\n"), ["POST / \r\n0\r\n\r\nGET", SEEN]),
    "7.1.1 extensions": (chunks(b'3;a=b;c="d;e"\r\nabc\r\n0;f\r\n\r\n'), [*READ]),
    "7.1.1 an extension with a line end in quotes": (chunks(b'3;a="\r\nabc\r\n0\r\n\r\n'), [400]),
    "7.1.1 an extension without a name": (chunks(b"3;\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1.1 an extension that ends with a bare line feed": (chunks(b"3;a\nabc\r\n0\r\n\r\n"), [400]),
    "7.1.1 nothing but a bare line feed": (chunks(b"3;\nabc\r\n0\r\n\r\n"), [400]),
    "7.1.1 an extension with a carriage return": (chunks(b"3;a\rb\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1.1 an extension with a zero byte": (chunks(b"3;a\0\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 a prefix": (chunks(b"0x3\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 a plus sign": (chunks(b"+3\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 a minus sign": (chunks(b"-3\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 an underscore": (chunks(b"1_0\r\n0123456789abcdef\r\n0\r\n\r\n"), [400]),
    "7.1 a space before": (chunks(b" 3\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 a space after": (chunks(b"3 \r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 a tab after": (chunks(b"3\t\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1.1 a space before an extension": (chunks(b"3 ;a\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 no size": (chunks(b"\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 no number": (chunks(b"xyz\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 a size of 2 to the 64, and 3": (chunks(b"10000000000000003\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 a size of 17 digits": (chunks(b"FFFFFFFFFFFFFFFFF\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 a size of 2 to the 64, less 1": (CHUNKED + b"FFFFFFFFFFFFFFFF\r\n" + b"a" * 1001, [413]),
    "7.1 more chunks than a body may have": (CHUNKED + b"8\r\n01234567\r\n" * 126, [413]),
    "7.1 a size that ends with a bare line feed": (chunks(b"3\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 a size that ends with two carriage returns": (chunks(b"3\r\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 a chunk that ends with a bare line feed": (chunks(b"3\r\nabc\n0\r\n\r\n"), [400]),
    "7.1 a chunk that ends with a bare carriage return": (chunks(b"3\r\nabc\r0\r\n\r\n"), [400]),
    "7.1 a chunk without an end": (chunks(b"3\r\nabc0\r\n\r\n"), [400]),
    "7.1 a chunk shorter than its size": (chunks(b"4\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 a chunk longer than its size": (chunks(b"2\r\nabc\r\n0\r\n\r\n"), [400]),
    "7.1 a last chunk that ends with a bare line feed": (chunks(b"3\r\nabc\r\n0\n\r\n"), [400]),
    "7.1 an end that is a bare line feed": (chunks(b"3\r\nabc\r\n0\r\n\n"), [400]),
    "7.1 an end that is no line feed": (chunks(b"3\r\nabc\r\n0\r\n\rX"), [400]),
    "7.1.2 a trailer": (chunks(b"3\r\nabc\r\n0\r\nX: y\r\n\r\n"), [*READ]),
    "6.5.1 a trailer that names a host": (chunks(b"3\r\nabc\r\n0\r\nHost: b\r\n\r\n"), [*READ]),
    "6.5.1 a trailer that expects": (chunks(b"3\r\nabc\r\n0\r\nExpect: 100-continue\r\n\r\n"), [*READ]),
    "6.5.1 a trailer that offers to upgrade": (
        chunks(b"3\r\nabc\r\n0\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), [*READ]),
    "6.5.1 a trailer with an encoding": (chunks(b"3\r\nabc\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"), [400]),
    "6.5.1 a trailer with a length": (chunks(b"3\r\nabc\r\n0\r\nContent-Length: 30\r\n\r\n"), [400]),
    "5.2 a folded trailer": (chunks(b"3\r\nabc\r\n0\r\nX: y\r\n z\r\n\r\n"), [400]),
    "5.1 a trailer without a colon": (chunks(b"3\r\nabc\r\n0\r\nX y\r\n\r\n"), [400]),
    "5 endless trailers": (CHUNKED + b"0\r\n" + b"X: y\r\n" * 400, [431]),
}  # fmt: skip
