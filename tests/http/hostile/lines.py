"""Request lines and headers as no client should write them. Sections are RFC 9112's, or RFC 9110's where it says so."""

from tests.http.hostile.outcome import END, Vectors
from tests.http.peer import GET, LAST

SEEN = "GET / "


def line(start: bytes) -> bytes:
    """Make a request of a first line, and one after it."""
    return start + b"\r\nHost: a\r\n\r\n" + GET


def header(text: bytes) -> bytes:
    """Make a request with a header, and one after it."""
    return b"GET / HTTP/1.1\r\nHost: a\r\n" + text + b"\r\n\r\n" + GET


def host(value: bytes) -> bytes:
    return b"GET / HTTP/1.1\r\nHost:" + value + b"\r\n\r\n" + GET


TARGETS: Vectors = {
    "3.2.1 a path": (line(b"GET /a%20b/?c=d&e HTTP/1.1"), ["GET /a%20b/?c=d&e ", SEEN]),
    "3.2.1 two slashes": (line(b"GET //a/b HTTP/1.1"), ["GET //a/b ", SEEN]),
    "3.2.2 an address": (line(b"GET http://a/x HTTP/1.1"), ["GET http://a/x ", SEEN]),
    "3.2.2 an address without a path": (line(b"GET http://a:80 HTTP/1.1"), ["GET http://a:80 ", SEEN]),
    "3.2.2 an address in any case": (line(b"GET HTTPS://[::1]:8/x HTTP/1.1"), ["GET HTTPS://[::1]:8/x ", SEEN]),
    "3.2.4 all": (line(b"OPTIONS * HTTP/1.1"), ["OPTIONS * ", SEEN]),
    "3.2.2 an address of another scheme": (line(b"GET ftp://a/ HTTP/1.1"), [400]),
    "9110 4.2.1 an address without a host": (line(b"GET http:///x HTTP/1.1"), [400]),
    "9110 4.2.4 an address with a user": (line(b"GET http://u@a/x HTTP/1.1"), [400]),
    "3.2.3 a host and a port": (line(b"GET a:80 HTTP/1.1"), [400]),
    "3.2.3 CONNECT": (line(b"CONNECT a:80 HTTP/1.1"), [405]),
    "3.2.4 all, but not of OPTIONS": (line(b"GET * HTTP/1.1"), [400]),
    "3.2 a name": (line(b"GET x HTTP/1.1"), [400]),
    "3.2 a query alone": (line(b"GET ?x HTTP/1.1"), [400]),
    "3.2 a fragment": (line(b"GET /#x HTTP/1.1"), [400]),
    "3.2 nothing": (line(b"GET  HTTP/1.1"), [400]),
    "3.2 a space": (line(b"GET /a b HTTP/1.1"), [400]),
    "3.2 a tab": (line(b"GET /\tx HTTP/1.1"), [400]),
    "3.2 a zero byte": (line(b"GET /\0 HTTP/1.1"), [400]),
    "3.2 a control character": (line(b"GET /\x01 HTTP/1.1"), [400]),
    "3.2 a delete": (line(b"GET /\x7f HTTP/1.1"), [400]),
    "3.2 no ASCII": (line(b"GET /\xc3\xa9 HTTP/1.1"), [400]),
    "3.2 a bare line feed": (line(b"GET /\n HTTP/1.1"), [400]),
    "3.2 a carriage return": (line(b"GET /\r HTTP/1.1"), [400]),
    "3 a very long one": (line(b"GET /" + b"x" * 2000 + b" HTTP/1.1"), [431]),
    "3 an endless one": (b"GET /" + b"x" * 3000, [431]),
}

VERSIONS: Vectors = {
    "2.3 HTTP/1.0 is the end": (line(b"GET / HTTP/1.0"), [SEEN, END]),
    "2.3 HTTP/0.9": (b"GET /\r\n\r\n", [505]),
    "2.3 HTTP/0.9 with headers": (b"GET /\r\nHost: a\r\n\r\n" + GET, [505]),
    "2.3 HTTP/0.9 by name": (line(b"GET / HTTP/0.9"), [505]),
    "2.3 HTTP/2.0 by name": (line(b"GET / HTTP/2.0"), [505]),
    "2.3 HTTP/1.2": (line(b"GET / HTTP/1.2"), [400]),
    "2.3 HTTP/3.0": (line(b"GET / HTTP/3.0"), [400]),
    "2.3 two digits": (line(b"GET / HTTP/1.10"), [400]),
    "2.3 a leading zero": (line(b"GET / HTTP/01.1"), [400]),
    "2.3 no dot": (line(b"GET / HTTP/11"), [400]),
    "2.3 no minor": (line(b"GET / HTTP/1"), [400]),
    "2.3 nothing after the dot": (line(b"GET / HTTP/1."), [400]),
    "2.3 a comma": (line(b"GET / HTTP/1,1"), [400]),
    "2.3 lower case": (line(b"GET / http/1.1"), [400]),
    "2.3 another name": (line(b"GET / HTP/1.1"), [400]),
    "2.3 a longer name": (line(b"GET / HTTPS/1.1"), [400]),
    "2.3 RTSP": (line(b"GET / RTSP/1.0"), [400]),
    "2.3 RTSP, a later one": (line(b"POST /a/b/c/d/e/f?g RTSP/1.1"), [400]),
    "2.3 RTSP, with a method of its own": (line(b"DESCRIBE / RTSP/1.0"), [400]),
    "2.3 RTSP, as a second request": (GET + line(b"OPTIONS * RTSP/1.0"), [SEEN, 400]),
    "2.3 ICE": (line(b"SOURCE / ICE/1.0"), [400]),
    "2.3 a path that looks like it": (line(b"GET /RTSP/1.0 HTTP/1.1"), ["GET /RTSP/1.0 ", SEEN]),
    "2.3 a header that looks like it": (header(b"X: a RTSP/1.0\r\nY: b ICE/1.0"), [SEEN, SEEN]),
    "2.3 a space after it": (line(b"GET / HTTP/1.1 "), [400]),
    "9113 3.4 the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400]),
    "TLS on a plain port": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(32)), [400]),
}

METHODS: Vectors = {
    "9110 9.1 lower case": (line(b"get / HTTP/1.1"), [400]),
    "9110 9.1 mixed case": (line(b"Get / HTTP/1.1"), [400]),
    "9110 9.1 unknown": (line(b"FOO / HTTP/1.1"), [400]),
    "9110 9.1 no token": (line(b"G(T / HTTP/1.1"), [400]),
    "9110 9.1 a name that goes on": (line(b"GETS / HTTP/1.1"), [400]),
    "3 none": (line(b"/ HTTP/1.1"), [400]),
    "3 a space before": (b" " + GET, [400]),
    "3 tabs for spaces": (line(b"GET\t/\tHTTP/1.1"), [400]),
    "3 two spaces are read as one": (line(b"GET  /  HTTP/1.1"), [SEEN, SEEN]),
    "2.2 empty lines before": (b"\r\n\r\n" + GET, [SEEN]),
    "2.2 an empty line between": (GET + b"\r\n" + GET, [SEEN, SEEN]),
    "2.2 nothing but empty lines": (b"\r\n" * 20, []),
    "2.2 a zero byte before": (b"\0" + GET, [400]),
    "9.3.2 nothing is read after a refusal": (GET + line(b"FOO / HTTP/1.1"), [SEEN, 400]),
    "9.6 nothing is read after the last request": (LAST + GET, [SEEN, END]),
    "9.6 what is no HTTP after the last request": (LAST + b"\0", [SEEN, END]),
}

HEADERS: Vectors = {
    "5 an empty value": (header(b"X:"), [SEEN, SEEN]),
    "5.5 bytes that are no ASCII in a value": (header(b"X: \xe9\xff"), [SEEN, SEEN]),
    "5.1 every character that a name may have": (header(b"!#$%&'*+-.^_`|~09azAZ: y"), [SEEN, SEEN]),
    "2.2 bare line feeds": (b"GET / HTTP/1.1\nHost: a\n\n", [400]),
    "2.2 a bare line feed after the first line": (b"GET / HTTP/1.1\nHost: a\r\n\r\n", [400]),
    "2.2 a bare line feed after a header": (header(b"X: y\nZ: a"), [400]),
    "2.2 a bare line feed at the end": (b"GET / HTTP/1.1\r\nHost: a\r\n\n", [400]),
    "2.2 a bare line feed after the last header": (header(b"X: y\n"), [400]),
    "2.2 bare carriage returns": (b"GET / HTTP/1.1\rHost: a\r\r", [400]),
    "2.2 a bare carriage return in a value": (header(b"X: a\rb"), [400]),
    "2.2 two carriage returns": (header(b"X: a\r"), [400]),
    "2.2 a carriage return before a name": (header(b"\rX: y"), [400]),
    "5.2 folded": (header(b"X: a\r\n b"), [400]),
    "5.2 folded with a tab": (header(b"X: a\r\n\tb"), [400]),
    "2.2 a space before the first header": (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", [400]),
    "2.2 a space for the end": (b"GET / HTTP/1.1\r\nHost: a\r\n \r\n\r\n", [400]),
    "5.1 a space before the colon": (header(b"X : a"), [400]),
    "5.1 a tab before the colon": (header(b"X\t: a"), [400]),
    "5.1 a space in a name": (header(b"X Y: a"), [400]),
    "5 an empty name": (header(b": a"), [400]),
    "5 no colon": (header(b"novalue"), [400]),
    "5.1 a name that is no token": (header(b"X(: a"), [400]),
    "5.1 a name that is no ASCII": (header(b"X\xe9: a"), [400]),
    "5.1 a zero byte in a name": (header(b"X\0: a"), [400]),
    **{f"5.5 the character {code:#04x} in a value": (header(b"X: a%cb" % code), [400])
       for code in (*range(9), *range(11, 13), *range(14, 32), 127)},
    "5 too many": (header(b"X: y\r\n" * 10 + b"Z: a"), [431]),
    "5 endlessly many": (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 500, [431]),
    "5 a long one": (header(b"X: " + b"y" * 2000), [431]),
    "3.2 no host": (b"GET / HTTP/1.1\r\n\r\n", [400]),
    "3.2 two hosts": (header(b"Host: b"), [400]),
    "3.2 two hosts in HTTP/1.0": (header(b"Host: a").replace(b"1.1", b"1.0", 1), [400]),
    "3.2 an empty host": (host(b""), [SEEN, SEEN]),
    "3.2 a host, a number, a port": (host(b" [::1]:80") + host(b" 127.0.0.1:8080") + host(b" a_b.c%41:"), [SEEN] * 6),
    "3.2 a host with a space": (host(b" a b"), [400]),
    "3.2 a list of hosts": (host(b" a, b"), [400]),
    "3.2 a host with a user": (host(b" u@a"), [400]),
    "3.2 a host with a path": (host(b" a/b"), [400]),
    "3.2 a host with a port that is no number": (host(b" a:x"), [400]),
    "3.2 a host without a bracket": (host(b" [::1"), [400]),
    "3.2 a host that is no ASCII": (host(b" \xe9"), [400]),
    "9.3 close among others": (header(b"Connection: x, Close"), [SEEN, END]),
    "9.3 close before keep-alive": (header(b"Connection: close, keep-alive"), [SEEN, END]),
    "9.3 keep-alive before close": (header(b"Connection: keep-alive\r\nConnection: close"), [SEEN, END]),
    "9110 10.1.1 an expectation that nobody knows": (header(b"Expect: coffee"), [417]),
}  # fmt: skip
